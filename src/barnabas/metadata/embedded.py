"""The embedded store: the metadata tree of one process in one SQLite file, for a laptop, a broker alone, or brokers in one process.

The file is a journal with a memory: reads never touch it, every commit is one SQLite transaction that is synced before anything is answered
(WAL, synchronous=FULL), and opening reads it once. Ephemeral nodes are never in it, so a dead process leaves none behind.
It must never be shared between processes: it is locked from opening to closing, and by the kernel, so a killed process leaves no lock.
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
from barnabas.metadata.nodes import Image, Limits, Nodes

APPLICATION_ID: Final = 0x42524E42  # "BRNB" in the header of the file, so that `file` and we know it
SCHEMA_VERSION: Final = 1
WAL_BYTES_MAX: Final = 16 * 1024 * 1024  # what stays of the WAL after a checkpoint; a greater one is cut back to this
WAL_CHECKPOINT_PAGES: Final = 1000
FREE_PAGES_KEPT: Final = 1000  # more free pages than this are given back to the disk when the file is opened

# `creates` counts children ever made. WITHOUT ROWID: the rows stand in the order of their paths, parents before children.
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
    """The tree kept in the file `path`, made if it is not there. Raises StoreUnusable, with a text that names the file and the fix."""
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
    """Makes the file where there is none, because SQLite makes it readable for others. The WAL gets the permissions of the file.

    A file that exists must not be opened here: closing it would release the lock that SQLite has on it in this process.
    """
    with suppress(OSError):  # SQLite tells what is wrong with the path
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE))


class SqliteJournal:
    def __init__(self, path: str) -> None:
        self.path = self._path = path
        _make_private(path)
        self._database = sqlite3.connect(path, timeout=0, isolation_level=None)
        try:
            # Exclusive before the first access: the lock is taken once and kept, and the WAL needs no shared memory file.
            self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._is_new = self._recognize()
            self._database.execute("PRAGMA auto_vacuum = INCREMENTAL")  # heeded only while the file is empty
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = FULL")
            self._database.execute("PRAGMA fullfsync = ON")  # macOS: also out of the cache of the drive
            self._database.execute(f"PRAGMA journal_size_limit = {WAL_BYTES_MAX}")
            self._database.execute(f"PRAGMA wal_autocheckpoint = {WAL_CHECKPOINT_PAGES}")
            self._database.execute("PRAGMA temp_store = MEMORY")
        except (sqlite3.Error, StoreUnusable):
            self._database.close()
            raise

    def load(self, limits: Limits) -> tuple[Nodes, int]:
        """All nodes, and the epoch of this life: greater than that of any before, also of one that wrote nothing."""
        self._database.execute("BEGIN IMMEDIATE")
        if self._is_new:
            self._make_tables()
        nodes = Nodes(limits)
        last_zxid = 0
        collecting = gc.isenabled()
        gc.disable()  # nothing is garbage yet: the collector would walk the growing tree again and again
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
            self._database.executescript("PRAGMA incremental_vacuum")  # `execute` would free one page only
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
            with suppress(sqlite3.Error):  # SQLite may have rolled back by itself, or be past helping: the first error is the one to tell
                execute("ROLLBACK")
            raise StoreFailure(
                "/", f"The metadata store {self._path} could not keep a change: {error}. Check the disk's space and health"
            ) from error

    def close(self) -> None:
        self._database.close()  # checkpoints and removes the WAL

    def _recognize(self) -> bool:
        """Whether the file is new. Refuses one that is not ours, or is newer than this program, before anything in it is changed."""
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
        """Inside the first transaction, so that a store is either new or whole."""
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
