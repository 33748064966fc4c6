"""A data directory that is locked for a conversion, with the same locks that its brokers take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from barnabas.errors import KafkaStorageError
from barnabas.layout.cluster_image import ClusterImage
from barnabas.layout.errors import DirectoryInUse, NotConvertible
from barnabas.layout.inventory import LayoutInventory, NodeInventory, read_node
from barnabas.layout.layout import Layout, node_dir
from barnabas.layout.layout_file import find_layout, node_numbers, used_nodes
from barnabas.storage.directory.log_dir import LogDir, is_unused_log_dir
from barnabas.storage.disk.files import AnyFiles


class DataDirectory:
    def __init__(self, files: AnyFiles, log_dir: LogDir) -> None:
        self._files = files
        self._log_dir = log_dir
        self.path = log_dir.path

    def layout(self) -> Layout:
        """Raises NotConvertible, WrongLayout."""
        layout = find_layout(self._files, self.path)
        if layout is None:
            raise NotConvertible(f"{self.path} has no data of `barnabas up`: name its directory with --data")
        return layout

    @contextmanager
    def locked_nodes(self, layout: Layout) -> Iterator[dict[int, LogDir]]:
        """The log directory of each broker; for a single broker the data directory itself, under number 0."""
        with ExitStack() as cleanup:
            if layout.is_single:
                yield {0: self._log_dir}
                return
            log_dirs: dict[int, LogDir] = {}
            for number in used_nodes(self._files, self.path):
                log_dirs[number] = _locked(self._files, f"{self.path}/{node_dir(number)}")
                cleanup.callback(log_dirs[number].release)
            yield log_dirs

    def inventory(self, layout: Layout, log_dirs: dict[int, LogDir], image: ClusterImage) -> LayoutInventory:
        nodes: dict[int, NodeInventory] = {}
        for number, log_dir in log_dirs.items():
            node = read_node(self._files, log_dir, number or None)
            nodes[node.node] = node
        return LayoutInventory(layout, image, nodes, self._leftovers())

    def _leftovers(self) -> list[int]:
        """The numbers of broker directories without logs, left by a failed start."""
        used = used_nodes(self._files, self.path)
        return [
            number
            for number in node_numbers(self._files, self.path)
            if number not in used and is_unused_log_dir(self._files, f"{self.path}/{node_dir(number)}")
        ]


def _locked(files: AnyFiles, path: str) -> LogDir:
    try:
        return LogDir(files, path)
    except KafkaStorageError:
        raise DirectoryInUse(f"{path} is in use by a broker, or by another conversion: stop it, then convert again") from None


@contextmanager
def locked_data(files: AnyFiles, path: str) -> Iterator[DataDirectory]:
    """Raises DirectoryInUse if a broker or another conversion has locked the directory."""
    log_dir = _locked(files, path)
    try:
        yield DataDirectory(files, log_dir)
    finally:
        log_dir.release()
