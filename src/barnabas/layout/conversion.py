"""Executes a conversion, on the disk and in the metadata store.

Everything new is first written beside the data, where no broker reads it. The journal is written last: before that nothing has changed,
after that the conversion only goes forward. A process that is killed at any step leaves a directory that is unchanged, or one on which no
broker starts; running the conversion again completes it. No log is copied: all renames are within one directory tree.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from barnabas.layout.errors import NotConvertible
from barnabas.layout.inventory import LayoutInventory
from barnabas.layout.journal import NEW_DIR, OLD_DIR, ConversionJournal, decode, journal_of, new_dir, old_dir
from barnabas.layout.layout_file import LayoutFile
from barnabas.layout.plan import ConversionPlan, NewNode
from barnabas.storage.directory.checkpoints import OffsetCheckpoint
from barnabas.storage.directory.clean_shutdown import CLEAN_SHUTDOWN_FILE, CleanShutdownFile
from barnabas.storage.directory.log_dir import CONVERSION_DIR, CONVERSION_JOURNAL
from barnabas.storage.directory.meta_properties import META_PROPERTIES, MetaPropertiesFile
from barnabas.storage.disk.files import AnyFiles

_JOURNAL_BYTES_MAX: Final = 1024 * 1024 * 1024


class Conversion:
    """The conversion of one data directory, whose lock the caller holds. `write_znodes` durably sets or creates znodes of its store."""

    def __init__(self, files: AnyFiles, data: str, write_znodes: Callable[[Sequence[tuple[str, bytes]]], None], now_ms: int) -> None:
        self._files = files
        self._data = data
        self._write_znodes = write_znodes
        self._now_ms = now_ms
        self._work = f"{data}/{CONVERSION_DIR}"
        self._journal = f"{self._work}/{CONVERSION_JOURNAL}"

    @property
    def is_unfinished(self) -> bool:
        return self._files.exists(self._journal)

    def clean_up(self) -> None:
        """Removes the files of a conversion that did not begin, or was completed: without a journal they have no effect."""
        assert not self.is_unfinished
        if self._files.exists(self._work):
            self._files.remove_tree(self._work)
            self._files.sync_dir(self._data)

    def begin(self, plan: ConversionPlan, inventory: LayoutInventory) -> None:
        """Writes the new files, and the journal. The old layout is not changed."""
        self.clean_up()
        self._check_targets_are_free(journal_of(plan, inventory, ()))
        for node in inventory.nodes:
            self._files.make_dirs(
                self._path(old_dir(node) if plan.source.is_single else OLD_DIR)
            )  # else the directory is renamed as a whole
        written = [self._write_node(self._path(new_dir(node)), new) for node, new in plan.nodes.items()]
        if not plan.target.is_single:
            LayoutFile(self._files, self._work).write(plan.target)
        for directory in (self._path(OLD_DIR), self._path(NEW_DIR), self._work, self._data):
            self._files.sync_dir(directory)
        self._write(journal_of(plan, inventory, written[0]))

    def finish(self) -> ConversionJournal:
        """Executes the remaining steps of the journal."""
        journal = decode(self._files.read_bytes(self._journal, _JOURNAL_BYTES_MAX), self._journal)
        while journal.phase < len(journal.phases):
            self._rename(journal.phases[journal.phase])
            journal = replace(journal, phase=journal.phase + 1)
            self._write(journal)
        self._write_znodes(journal.znodes)
        self._files.remove(self._journal)
        self._files.sync_dir(self._work)
        self.clean_up()
        return journal

    def _rename(self, renames: Sequence[tuple[str, str]]) -> None:
        touched: set[str] = set()
        for old, new in renames:
            source, target = self._path(old), self._path(new)
            if self._files.exists(source):
                self._files.rename(source, target)
            touched.update((os.path.dirname(source), os.path.dirname(target)))
        for directory in sorted(touched):
            if self._files.is_dir(directory):
                self._files.sync_dir(directory)

    def _check_targets_are_free(self, journal: ConversionJournal) -> None:
        set_aside = {old for old, _ in journal.phases[0]}
        for _, new in journal.phases[-1]:
            if new not in set_aside and self._files.exists(self._path(new)):
                raise NotConvertible(f"{self._path(new)} is not of these brokers, and is in the way: move it away, then convert again")

    def _write_node(self, directory: str, node: NewNode) -> list[str]:
        """Returns the names of the files written."""
        self._files.make_dirs(directory)
        MetaPropertiesFile(self._files, directory).write(node.meta, self._now_ms)
        for name, offsets in node.checkpoints.items():
            OffsetCheckpoint(self._files, f"{directory}/{name}").write(offsets)
        CleanShutdownFile(self._files, directory).write()
        return [META_PROPERTIES, *node.checkpoints, CLEAN_SHUTDOWN_FILE]

    def _write(self, journal: ConversionJournal) -> None:
        self._files.write_atomically(self._journal, journal.encode())

    def _path(self, relative: str) -> str:
        return f"{self._data}/{relative}"
