"""layout.properties: the number of brokers that a data directory was made for. The directory of a single broker has no such file.

Counting the directories of the brokers is not enough: a first start may have been killed before the last of them was created.
"""

from __future__ import annotations

from typing import Final

from barnabas.errors import CorruptCheckpoint
from barnabas.layout.errors import WrongLayout
from barnabas.layout.layout import REPLICAS_MAX, Layout, node_dir
from barnabas.properties import parse_properties
from barnabas.storage.directory import names
from barnabas.storage.directory.checkpoints import read_text
from barnabas.storage.directory.log_dir import CONVERSION_DIR, CONVERSION_JOURNAL
from barnabas.storage.directory.meta_properties import META_PROPERTIES
from barnabas.storage.disk.files import AnyFiles

LAYOUT_FILE: Final = "layout.properties"
SEVERAL_MIN: Final = 2
_VERSION: Final = "1"
_BYTES_MAX: Final = 4096


class LayoutFile:
    def __init__(self, files: AnyFiles, directory: str) -> None:
        self.files = files
        self.path = f"{directory}/{LAYOUT_FILE}"

    def read(self) -> Layout | None:
        """None if the file does not exist. Raises WrongLayout."""
        try:
            properties = parse_properties(read_text(self.files, self.path, _BYTES_MAX))
        except FileNotFoundError:
            return None
        except (CorruptCheckpoint, ValueError) as error:
            raise self._unreadable(str(error)) from None
        brokers = properties.get("brokers", "")
        if properties.get("version") != _VERSION or not brokers.isascii() or not brokers.isdigit() or int(brokers) < SEVERAL_MIN:
            raise self._unreadable("version=1 and brokers=N were expected")
        replicas = properties.get("replicas.max", str(REPLICAS_MAX))
        if not replicas.isascii() or not replicas.isdigit() or not 0 < int(replicas) <= REPLICAS_MAX:
            raise self._unreadable(f"replicas.max is from 1 to {REPLICAS_MAX}")
        return Layout(int(brokers), int(replicas))

    def write(self, layout: Layout) -> None:
        replicas = "" if layout.replicas_max == REPLICAS_MAX else f"replicas.max={layout.replicas_max}\n"
        self.files.write_atomically(self.path, f"version={_VERSION}\nbrokers={layout.brokers}\n{replicas}".encode())

    def _unreadable(self, why: str) -> WrongLayout:
        return WrongLayout(f"{self.path} cannot be read ({why}): remove it, and the directories broker-1 to broker-N are counted instead")


def find_layout(files: AnyFiles, data: str) -> Layout | None:
    """The layout of the existing data; None if no broker has used the directory yet. Raises WrongLayout."""
    if files.exists(f"{data}/{CONVERSION_DIR}/{CONVERSION_JOURNAL}"):
        raise WrongLayout(f"a conversion of {data} was interrupted; finish it with: barnabas convert --data {data} --brokers N")
    used = used_nodes(files, data)
    is_single = files.exists(f"{data}/{META_PROPERTIES}")
    if is_single and used:
        raise WrongLayout(
            f"{data} holds the logs of one broker and, in {', '.join(map(node_dir, used))}, those of several: "
            "move the ones that are not wanted to another directory"
        )
    if is_single:
        return Layout(1)
    if not used:
        return None
    recorded = LayoutFile(files, data).read()
    if recorded is None:
        return Layout(max(SEVERAL_MIN, used[-1]))
    return Layout(max(used[-1], recorded.brokers), recorded.replicas_max)


def node_numbers(files: AnyFiles, data: str) -> list[int]:
    """The numbers of the directories that are named like those of brokers, whatever they contain."""
    if not files.is_dir(data):
        return []
    matches = (names.NODE_DIR.fullmatch(entry.name) for entry in files.list_dir(data) if entry.is_dir)
    return sorted(int(match[1]) for match in matches if match is not None)


def used_nodes(files: AnyFiles, data: str) -> list[int]:
    """The numbers of the brokers that have a log directory of their own in the data directory."""
    return [number for number in node_numbers(files, data) if files.exists(f"{data}/{node_dir(number)}/{META_PROPERTIES}")]


def require_layout(files: AnyFiles, data: str, required: Layout) -> None:
    """Raises WrongLayout if the data is of another number of brokers: its topics would seem to be empty."""
    existing = find_layout(files, data)
    if existing is not None and existing.brokers != required.brokers:
        raise WrongLayout(
            f"{data} was made for {existing}, not for {required.brokers}: name another directory with --data, or move the data with: "
            f"barnabas convert --data {data} --brokers {required.brokers}"
        )
