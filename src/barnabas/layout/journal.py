"""The journal of a conversion: every rename and every znode that is still to be written, decided before the first of them is done.

Once the journal is on disk the conversion goes forward only: a journal that is found is carried out to its end, and each of its steps may
be done twice. Three phases of renames follow each other, each on disk before the next begins. First everything of the old layout goes to
`old/`, so that the names of the new layout are free. Then the logs that are kept go to `new/`. Then `new/` goes to where the brokers look
for it. No phase makes a name that it renames itself, so a source that is missing has been renamed already. Paths are relative to the data
directory.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from barnabas.layout.errors import WrongLayout
from barnabas.layout.inventory import Inventory
from barnabas.layout.layout import FIRST_NODE, Layout, node_dir
from barnabas.layout.layout_file import LAYOUT_FILE
from barnabas.layout.plan import Plan
from barnabas.storage.directory import names
from barnabas.storage.directory.log_dir import CONVERSION_DIR

VERSION: Final = 1
OLD_DIR: Final = f"{CONVERSION_DIR}/old"
NEW_DIR: Final = f"{CONVERSION_DIR}/new"

Rename = tuple[str, str]
Phase = tuple[Rename, ...]


@dataclass(frozen=True)
class Journal:
    source: Layout
    target: Layout
    phase: int  # so many are done
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


def decode(data: bytes, path: str) -> Journal:
    """Raises WrongLayout: a journal is replaced as a whole, so one that cannot be read was damaged."""
    try:
        content: dict[str, Any] = json.loads(data)
        if content["version"] != VERSION:
            raise ValueError(f"version {content['version']} is not known")
        return Journal(
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


def journal_of(plan: Plan, inventory: Inventory, new_files: Sequence[str]) -> Journal:
    """`new_files` are the files that stand ready in the new directory of each broker, besides logs."""
    keep = tuple((f"{old_dir(move.source)}/{move.name}", f"{new_dir(move.target)}/{move.new_name}") for move in plan.moves)
    return Journal(plan.source, plan.target, 0, (_set_aside(inventory), keep, _put_in_place(plan, new_files)), plan.znodes)


def _set_aside(inventory: Inventory) -> Phase:
    renames: list[Rename] = [(node_dir(number), f"{OLD_DIR}/{node_dir(number)}") for number in inventory.leftovers]
    for node in inventory.nodes.values():
        if inventory.layout.is_single:
            entries = [*(names.partition_dir_name(partition) for partition in node.logs), *node.marked, *node.files]
            renames += [(name, f"{old_dir(node.node)}/{name}") for name in entries]
        else:
            renames.append((node_dir(node.node), old_dir(node.node)))
    renames.append((LAYOUT_FILE, f"{OLD_DIR}/{LAYOUT_FILE}"))
    return tuple(renames)


def _put_in_place(plan: Plan, new_files: Sequence[str]) -> Phase:
    if plan.target.is_single:
        entries = [*(move.new_name for move in plan.moves), *new_files]
        return tuple((f"{new_dir(FIRST_NODE)}/{name}", name) for name in entries)
    renames = [(new_dir(node), node_dir(node)) for node in plan.target.nodes]
    return (*renames, (f"{CONVERSION_DIR}/{LAYOUT_FILE}", LAYOUT_FILE))
