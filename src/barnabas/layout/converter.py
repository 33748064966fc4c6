"""The conversion of a data directory from beginning to end: takes its lock, and first completes an interrupted earlier run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from barnabas.layout.cluster_image import ClusterImage
from barnabas.layout.conversion import Conversion
from barnabas.layout.data_directory import DataDirectory, locked_data
from barnabas.layout.errors import NotConvertible
from barnabas.layout.inventory import LayoutInventory
from barnabas.layout.journal import ConversionJournal
from barnabas.layout.layout import Layout
from barnabas.layout.plan import ConversionPlan, plan
from barnabas.storage.disk.files import AnyFiles


class Store(Protocol):
    """The metadata store of a data directory."""

    def image(self) -> ClusterImage:
        """Raises NotConvertible."""

    def write(self, znodes: Sequence[tuple[str, bytes]]) -> None:
        """Sets each of the znodes, and creates those that are missing. Durable on return."""


@dataclass(frozen=True)
class ConversionProgress:
    """Callbacks: `planned` before a conversion begins, `resumed` after an interrupted one is completed."""

    planned: Callable[[ConversionPlan], None]
    resumed: Callable[[ConversionJournal], None]


class Converter:
    def __init__(self, files: AnyFiles, path: str, store: Store, random: Random, now_ms: int) -> None:
        self._files = files
        self._path = path
        self._store = store
        self._random = random
        self._conversion = Conversion(files, path, store.write, now_ms)

    def convert(self, target: Layout, progress: ConversionProgress, *, dry_run: bool = False) -> bool:
        """Returns False if there is nothing to do. Raises LayoutError and the errors of disk and store; after each it may be run again."""
        if not self._files.is_dir(self._path):
            raise NotConvertible(f"{self._path} is not a directory: name the data directory of `barnabas up` with --data")
        with locked_data(self._files, self._path) as data:
            if self._conversion.is_unfinished:
                if dry_run:
                    raise NotConvertible(f"a conversion of {self._path} was interrupted: finish it first, without --dry-run")
                progress.resumed(self._conversion.finish())
            elif not dry_run:
                self._conversion.clean_up()
            source = data.layout()
            if source.brokers == target.brokers:
                return False
            self._convert(data, source, target, progress, dry_run)
        return True

    def _convert(self, data: DataDirectory, source: Layout, target: Layout, progress: ConversionProgress, dry_run: bool) -> None:
        with data.locked_nodes(source) as log_dirs:
            inventory: LayoutInventory = data.inventory(source, log_dirs, self._store.image())
            decided = plan(inventory, target, self._random)
            progress.planned(decided)
            if not dry_run:
                self._conversion.begin(decided, inventory)
                self._conversion.finish()
