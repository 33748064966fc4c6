"""The journal of a conversion: all remaining renames and znode writes, decided before the first of them is executed.

Once the journal is on disk the conversion only goes forward: an existing journal is executed to its end, and each of its steps is
idempotent. There are three phases of renames, each on disk before the next begins. First everything of the old layout is moved to `old/`,
so that the names of the new layout are free. Then the logs to keep are moved to `new/`. Then the contents of `new/` are moved to their
final places. No phase creates a name that it renames itself, so a missing source means that the rename is done. Paths are relative to the
data directory.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from barnabas.layout.errors import WrongLayout
from barnabas.layout.inventory import LayoutInventory
from barnabas.layout.layout import FIRST_NODE, Layout, node_dir
from barnabas.layout.layout_file import LAYOUT_FILE
from barnabas.layout.plan import ConversionPlan
from barnabas.storage.directory import names
from barnabas.storage.directory.log_dir import CONVERSION_DIR

VERSION: Final = 1
OLD_DIR: Final = f"{CONVERSION_DIR}/old"
NEW_DIR: Final = f"{CONVERSION_DIR}/new"

Rename = tuple[str, str]
Phase = tuple[Rename, ...]


@dataclass(frozen=True)
class ConversionJournal:
    source: Layout
    target: Layout
    phase: int  # the number of completed phases
    phases: Sequence[Phase]
    znodes: Sequence[tuple[str, bytes]]

    def encode(self) -> bytes:
        content = {
            "version": VERSION,
            "source": self.source.brokers,
            "target": self.target.brokers,
            "phase": self.phase,
            "phases": self.phases,
            "znodes": [(path, data.decode()) for path, data in self.znodes],
        }
        return json.dumps(content, ensure_ascii=False).encode()


def decode(data: bytes, path: str) -> ConversionJournal:
    """Raises WrongLayout: a journal is replaced atomically, so an unreadable one was damaged."""
    try:
        content: dict[str, Any] = json.loads(data)
        if content["version"] != VERSION:
            raise ValueError(f"version {content['version']} is not known")
        return ConversionJournal(
            Layout(int(content["source"])),
            Layout(int(content["target"])),
            int(content["phase"]),
            tuple(tuple((str(old), str(new)) for old, new in phase) for phase in content["phases"]),
            tuple((str(path), str(text).encode()) for path, text in content["znodes"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise WrongLayout(f"{path} cannot be read ({error}): use the release that wrote it, or restore the data from a copy") from None


def old_dir(node: int) -> str:
    return f"{OLD_DIR}/{node}"


def new_dir(node: int) -> str:
    return f"{NEW_DIR}/{node}"


def journal_of(plan: ConversionPlan, inventory: LayoutInventory, new_files: Sequence[str]) -> ConversionJournal:
    """`new_files` are the files, besides logs, that are ready in the new directory of each broker."""
    keep = tuple((f"{old_dir(move.source)}/{move.name}", f"{new_dir(move.target)}/{move.new_name}") for move in plan.moves)
    return ConversionJournal(plan.source, plan.target, 0, (_set_aside(inventory), keep, _put_in_place(plan, new_files)), plan.znodes)


def _set_aside(inventory: LayoutInventory) -> Phase:
    renames: list[Rename] = [(node_dir(number), f"{OLD_DIR}/{node_dir(number)}") for number in inventory.leftovers]
    for node in inventory.nodes.values():
        if inventory.layout.is_single:
            entries = [*(names.partition_dir_name(partition) for partition in node.logs), *node.marked, *node.files]
            renames += [(name, f"{old_dir(node.node)}/{name}") for name in entries]
        else:
            renames.append((node_dir(node.node), old_dir(node.node)))
    renames.append((LAYOUT_FILE, f"{OLD_DIR}/{LAYOUT_FILE}"))
    return tuple(renames)


def _put_in_place(plan: ConversionPlan, new_files: Sequence[str]) -> Phase:
    if plan.target.is_single:
        entries = [*(move.new_name for move in plan.moves), *new_files]
        return tuple((f"{new_dir(FIRST_NODE)}/{name}", name) for name in entries)
    renames = [(new_dir(node), node_dir(node)) for node in plan.target.nodes]
    return (*renames, (f"{CONVERSION_DIR}/{LAYOUT_FILE}", LAYOUT_FILE))
