"""The embedded metadata store: the tree of one process in one SQLite file, for a single broker or several brokers in one process.

Reads never touch the file. Every commit is one SQLite transaction that is synced before any response (WAL, synchronous=FULL), and opening
reads the file once. Ephemeral nodes are never in it, so a dead process leaves none behind. Processes must never share the file: it is
locked from opening to closing, by a lock of the kernel, which a killed process cannot leave behind.
"""

from __future__ import annotations

import gc
import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from barnabas.file_modes import FILE_MODE
from barnabas.metadata.errors import NoNode, StoreFailure, StoreUnusable
from barnabas.metadata.local import EPOCH_BITS, LocalTree
from barnabas.metadata.nodes import Image, Limits, ZNodes

STORE_NAME: Final = "barnabas.db"  # in a log directory; Kafka and Barnabas ignore files there when they load logs
APPLICATION_ID: Final = 0x42524E42  # "BRNB" in the header of the file, which identifies it, also for `file`
SCHEMA_VERSION: Final = 1
WAL_BYTES_MAX: Final = 16 * 1024 * 1024  # a checkpoint truncates a larger WAL to this size
WAL_CHECKPOINT_PAGES: Final = 1000
FREE_PAGES_KEPT: Final = 1000  # opening the file returns more free pages than this to the disk

# `creates` counts the children ever created. WITHOUT ROWID: the rows are in the order of their paths, parents before children.
_SCHEMA: Final = """
CREATE TABLE node (
    path TEXT PRIMARY KEY, data BLOB, version INTEGER NOT NULL, creates INTEGER NOT NULL,
    czxid INTEGER NOT NULL, mzxid INTEGER NOT NULL, pzxid INTEGER NOT NULL, ctime INTEGER NOT NULL, mtime INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE life (epoch INTEGER NOT NULL);
INSERT INTO life VALUES (0);
"""
_COLUMNS: Final = "path, data, version, creates, czxid, mzxid, pzxid, ctime, mtime"


def open_embedded(path: str, now_ms: Callable[[], int], limits: Limits | None = None) -> LocalTree:
    """The tree in the file `path`, which is created if it is missing. Raises StoreUnusable with a text that names the file and the fix."""
    try:
        journal = SqliteJournal(path)
    except sqlite3.Error as error:
        raise StoreUnusable(_explain(path, error)) from error
    try:
        nodes, epoch = journal.load(limits if limits is not None else Limits())
    except (sqlite3.Error, NoNode) as error:
        journal.close()
        raise StoreUnusable(_explain(path, error)) from error
    return LocalTree(now_ms, journal, nodes, epoch)


def _make_private(path: str) -> None:
    """Creates the file if it is missing, because SQLite would create it readable by others. The WAL gets the same permissions.

    A file that exists must not be opened here: closing it would release the lock that SQLite has on it in this process.
    """
    with suppress(OSError):  # SQLite reports what is wrong with the path
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE))


class SqliteJournal:
    def __init__(self, path: str) -> None:
        self.path = self._path = path
        _make_private(path)
        self._database = sqlite3.connect(path, timeout=0, isolation_level=None)
        try:
            # Exclusive before the first access: the lock is taken once and kept, and the WAL needs no shared-memory file.
            self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._is_new = self._recognize()
            self._database.execute("PRAGMA auto_vacuum = INCREMENTAL")  # takes effect only while the file is empty
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = FULL")
            self._database.execute("PRAGMA fullfsync = ON")  # macOS: also out of the cache of the drive
            self._database.execute(f"PRAGMA journal_size_limit = {WAL_BYTES_MAX}")
            self._database.execute(f"PRAGMA wal_autocheckpoint = {WAL_CHECKPOINT_PAGES}")
            self._database.execute("PRAGMA temp_store = MEMORY")
        except (sqlite3.Error, StoreUnusable):
            self._database.close()
            raise

    def load(self, limits: Limits) -> tuple[ZNodes, int]:
        """All nodes, and an epoch that is greater than that of every earlier opening, including those that wrote nothing."""
        self._database.execute("BEGIN IMMEDIATE")
        if self._is_new:
            self._make_tables()
        nodes = ZNodes(limits)
        last_zxid = 0
        collecting = gc.isenabled()
        gc.disable()  # nothing is garbage yet: the collector would traverse the growing tree again and again
        try:
            for path, *image in self._database.execute(f"SELECT {_COLUMNS} FROM node ORDER BY path"):
                nodes.load(path, (*image, 0))
                last_zxid = max(last_zxid, image[4], image[5])
        finally:
            if collecting:
                gc.enable()
        (epoch,) = self._database.execute("SELECT epoch FROM life").fetchone()
        epoch = max(epoch, last_zxid >> EPOCH_BITS) + 1
        self._database.execute("UPDATE life SET epoch = ?", (epoch,))
        self._database.execute("COMMIT")
        (free_pages,) = self._database.execute("PRAGMA freelist_count").fetchone()
        if free_pages > FREE_PAGES_KEPT:
            self._database.executescript("PRAGMA incremental_vacuum")  # `execute` would free only one page
        return nodes, epoch

    def commit(self, written: Sequence[tuple[str, Image]], deleted: Sequence[str]) -> None:
        execute = self._database.execute
        try:
            execute("BEGIN IMMEDIATE")
            if deleted:
                self._database.executemany("DELETE FROM node WHERE path = ?", [(path,) for path in deleted])
            rows = [(path, *image[:-1]) for path, image in written]
            self._database.executemany(f"INSERT OR REPLACE INTO node ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
            execute("COMMIT")
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):  # SQLite may have rolled back by itself, or fail again: the first error is the one to report
                execute("ROLLBACK")
            raise StoreFailure(
                "/", f"The metadata store {self._path} could not keep a change: {error}. Check the disk's space and health"
            ) from error

    def close(self) -> None:
        self._database.close()  # checkpoints and removes the WAL

    def _recognize(self) -> bool:
        """Whether the file is new. Rejects a file of another program or a newer version before anything in it is changed."""
        (tables,) = self._database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        (application_id,) = self._database.execute("PRAGMA application_id").fetchone()
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        if not tables:
            return True
        if application_id != APPLICATION_ID:
            raise StoreUnusable(f"{self._path} is an SQLite file of another program. Give the metadata store a file of its own")
        if version != SCHEMA_VERSION:
            raise StoreUnusable(
                f"The metadata store {self._path} has version {version}, this program knows {SCHEMA_VERSION}. Use the program that wrote it"
            )
        return False

    def _make_tables(self) -> None:
        """Runs inside the first transaction, so that a store is either new or complete."""
        for statement in filter(str.strip, _SCHEMA.split(";")):
            self._database.execute(statement)
        self._database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        self._database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _explain(path: str, error: Exception) -> str:
    code = getattr(error, "sqlite_errorcode", None)
    primary = code & 0xFF if code is not None else None
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return f"The metadata store {path} is in use by another broker. Stop that one, or give this one a data directory of its own"
    if primary == sqlite3.SQLITE_CANTOPEN:
        return f"The metadata store {path} cannot be opened. Its directory must exist, and this user must be allowed to write there"
    if primary == sqlite3.SQLITE_READONLY:
        return f"The metadata store {path} is read-only. Make the file and its directory writable for this user"
    if primary == sqlite3.SQLITE_NOTADB:
        return f"{path} is not a metadata store. Give the metadata store a file of its own"
    if primary == sqlite3.SQLITE_CORRUPT or isinstance(error, NoNode):
        return f"The metadata store {path} is damaged ({error}). Restore it from a copy"
    return f"The metadata store {path} cannot be read: {error}"
