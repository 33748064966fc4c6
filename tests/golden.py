"""The logs in tests/data/golden-logs, written by Apache Kafka, and what Kafka's own dump said about them (DUMP.txt in each directory)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

LOGS = Path(__file__).parent / "data" / "golden-logs"
KINDS = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
FAULTS = ("Mismatches in ", "Found timestamp mismatch", "Found out of order", "The following indexed offsets", "Non-consecutive offsets")


def partitions(version: str = "*") -> list[Path]:
    """Every partition directory, of all runs of all versions unless told otherwise."""
    return sorted(dump.parent for dump in LOGS.glob(f"kafka-{version}/*/*/DUMP.txt"))


def name(directory: Path) -> str:
    """A short name for a test's parameter, such as `kafka-4.2.0/first/g-none-0`."""
    return str(directory.relative_to(LOGS))


def is_internal(directory: Path) -> bool:
    """DUMP.txt of an internal topic shows decoded keys and values."""
    return directory.name.startswith("__")


def files(directory: Path) -> list[Path]:
    """The files of a log, in the order of the dump."""
    return sorted(path for path in directory.iterdir() if path.suffix in KINDS)


@dataclass
class DumpedRecord:
    fields: dict[str, str]
    key: str | None
    payload: str | None


@dataclass
class DumpedBatch:
    fields: dict[str, str]
    records: list[DumpedRecord] = field(default_factory=list)


@dataclass
class Dumped:
    """One file, as DUMP.txt has it."""

    batches: list[DumpedBatch] = field(default_factory=list)
    entries: list[dict[str, str]] = field(default_factory=list)  # of an index or a snapshot


def read_dump(directory: Path, kind: str = "") -> dict[Path, Dumped]:
    """DUMP.txt by file, of one kind unless told otherwise."""
    dump = parse_dump((directory / "DUMP.txt").read_text("utf-8"))
    return {directory / name: dumped for name, dumped in dump.items() if name.endswith(kind)}


def parse_dump(text: str) -> dict[str, Dumped]:
    """What kafka-dump-log printed, by the name it gives each file."""
    dumped: dict[str, Dumped] = {}
    current = Dumped()
    for line in text.splitlines():
        if line.startswith(FAULTS):
            break
        if line.startswith("Dumping "):
            current = dumped[line.removeprefix("Dumping ")] = Dumped()
        elif line.startswith("| "):
            current.batches[-1].records.append(_record(line))
        elif " compresscodec: " in line:
            current.batches.append(DumpedBatch(_fields(line)))
        elif not line.endswith(" is empty.") and "tarting offset: " not in line:
            current.entries.append(_fields(line))
    return dumped


def _record(line: str) -> DumpedRecord:
    head, has_payload, payload = line.partition(" payload: ")
    head, has_key, key = head.partition(" key: ")
    return DumpedRecord(_fields(head), key if has_key else None, payload if has_payload else None)


def _fields(text: str) -> dict[str, str]:
    return dict(re.findall(r"(\w+): (\S+)", text))
