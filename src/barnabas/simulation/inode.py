"""The content of a simulated file: what a reader sees now, and what a machine crash may leave of it.

A write reaches the device whole, in pieces or not at all, in any order, until a sync has returned. After a sync that failed nobody
knows what became of the writes before it, and a later sync that succeeds does not bring them back: that is how Linux behaves.
"""

from __future__ import annotations

import enum
import random
from dataclasses import dataclass, field
from typing import Final

PAGE_BYTES: Final = 4096


class Fate(enum.Enum):
    """What a crash does to one write that was not synced."""

    KEPT = enum.auto()
    LOST = enum.auto()
    ZEROS = enum.auto()  # the size reached the device, the data did not
    PAGES = enum.auto()  # some pages of it
    TORN = enum.auto()  # only its beginning; the last surviving write only


class Certainty(enum.Enum):
    PENDING = enum.auto()
    DOOMED = enum.auto()  # a sync failed over it: it may be lost although a later sync succeeds
    SYNCED = enum.auto()


@dataclass(slots=True)
class Change:
    """A write of `data` at `position`, or, where `data` is None, a truncation to `position`."""

    position: int
    data: bytes | None
    certainty: Certainty = Certainty.PENDING


@dataclass(slots=True, eq=False)
class Inode:
    path: str | None  # None once it has no name left
    modified_ms: int = 0
    content: bytearray = field(default_factory=bytearray)
    certain: bytes = b""  # what the device holds without any of the changes
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
        """A file as it is found after the machine went down: durable, whatever it has become."""
        content = bytearray(self.certain)
        last_uncertain = max((n for n, change in enumerate(self.changes) if change.certainty is not Certainty.SYNCED), default=-1)
        # All or nothing of the uncertain is as likely as a mixture: a long list would otherwise never survive or vanish as a whole.
        mood = rng.choice([*Fate, None, None])
        for number, change in enumerate(self.changes):
            if change.certainty is Certainty.SYNCED:
                _apply(content, change)
                continue
            fate = mood or rng.choice(list(Fate))
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
