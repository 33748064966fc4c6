"""The content of a simulated file: what a reader sees now, and what may remain of it after a machine crash.

Until a sync returns, a write reaches the device whole, in pieces or not at all, in any order. After a failed sync the fate of the earlier
writes is unknown, and a later successful sync does not restore them: that is how Linux behaves.
"""

from __future__ import annotations

import enum
import random
from dataclasses import dataclass, field
from typing import Final

PAGE_BYTES: Final = 4096


class Fate(enum.Enum):
    """The effect of a crash on one unsynced write."""

    KEPT = enum.auto()
    LOST = enum.auto()
    ZEROS = enum.auto()  # the size reached the device, the data did not
    PAGES = enum.auto()  # some of its pages
    TORN = enum.auto()  # only its beginning; only for the last surviving write


class Certainty(enum.Enum):
    PENDING = enum.auto()
    DOOMED = enum.auto()  # a sync failed after it: it may be lost although a later sync succeeds
    SYNCED = enum.auto()


@dataclass(slots=True)
class Change:
    """A write of `data` at `position`, or, where `data` is None, a truncation to `position`."""

    position: int
    data: bytes | None
    certainty: Certainty = Certainty.PENDING


@dataclass(slots=True, eq=False)
class Inode:
    path: str | None  # None once its last name is removed
    modified_ms: int = 0
    content: bytearray = field(default_factory=bytearray)
    certain: bytes = b""  # the content of the device without any of the changes
    changes: list[Change] = field(default_factory=list)

    def write(self, data: bytes, position: int) -> None:
        self._change(Change(position, data))

    def truncate(self, size: int) -> None:
        self._change(Change(size, None))

    def _change(self, change: Change) -> None:
        _apply(self.content, change)
        self.changes.append(change)

    def synced(self) -> None:
        for change in self.changes:
            if change.certainty is Certainty.PENDING:
                change.certainty = Certainty.SYNCED
        if all(change.certainty is Certainty.SYNCED for change in self.changes):
            self.certain = bytes(self.content)
            self.changes.clear()

    def sync_failed(self) -> None:
        for change in self.changes:
            if change.certainty is Certainty.PENDING:
                change.certainty = Certainty.DOOMED

    def copy(self) -> Inode:
        changes = [Change(change.position, change.data, change.certainty) for change in self.changes]
        return Inode(self.path, self.modified_ms, bytearray(self.content), self.certain, changes)

    def after_crash(self, path: str, rng: random.Random) -> Inode:
        """The file after a machine crash; its content, whatever survived, is durable."""
        content = bytearray(self.certain)
        last_uncertain = max((n for n, change in enumerate(self.changes) if change.certainty is not Certainty.SYNCED), default=-1)
        # All or none of the uncertain changes is as likely as a mixture: a long list would otherwise never survive or vanish as a whole.
        common_fate = rng.choice([*Fate, None, None])
        for number, change in enumerate(self.changes):
            if change.certainty is Certainty.SYNCED:
                _apply(content, change)
                continue
            fate = common_fate or rng.choice(list(Fate))
            if fate is Fate.TORN and number != last_uncertain:
                fate = Fate.KEPT
            _apply_as(content, change, fate, rng)
        return Inode(path, self.modified_ms, bytearray(content), bytes(content))


def _apply(content: bytearray, change: Change) -> None:
    if change.data is None:
        del content[change.position :]
        content.extend(bytes(change.position - len(content)))
    else:
        _put(content, change.position, change.data)


def _apply_as(content: bytearray, change: Change, fate: Fate, rng: random.Random) -> None:
    if change.data is None:
        if fate in (Fate.KEPT, Fate.TORN):
            _apply(content, change)
    elif fate is Fate.KEPT:
        _put(content, change.position, change.data)
    elif fate is Fate.ZEROS:
        _put(content, change.position + len(change.data), b"")
    elif fate is Fate.TORN:
        _put(content, change.position, change.data[: rng.randint(0, len(change.data))])
    elif fate is Fate.PAGES:
        _put_some_pages(content, change.position, change.data, rng)


def _put(content: bytearray, position: int, data: bytes) -> None:
    content.extend(bytes(max(0, position - len(content))))
    content[position : position + len(data)] = data


def _put_some_pages(content: bytearray, position: int, data: bytes, rng: random.Random) -> None:
    at = 0
    while at < len(data):
        size = min(len(data) - at, PAGE_BYTES - (position + at) % PAGE_BYTES)
        if rng.random() < 0.5:
            _put(content, position + at, data[at : at + size])
        at += size
