# Compiled by mypyc: src/compiled.toml lists this module.
"""The descriptors of all files, of which a limited number is open at once.

A broker holds tens of thousands of segments and reads few of them. A file opens its descriptor through the pool when it needs one; the pool
then closes one that was not used lately (clock algorithm, or second chance). The pool must never close a descriptor during a system call on
any thread: the number might belong to another file by the time of the call.

Connections take descriptors from the same limit. So the pool can hold some spare descriptors, which it closes one by one when the process
has none left: a checkpoint or a roll must not fail because too many clients have connected.
"""

from __future__ import annotations

import contextlib
import os
import resource
import threading
from collections.abc import Callable
from typing import Final, TypeVar

from barnabas.file_modes import FILE_MODE
from barnabas.storage.disk.disk import is_shortage

T = TypeVar("T")

MAX_OPEN: Final = 16_384
NO_CEILING: Final = 2**31 - 1
NO_DESCRIPTOR: Final = -1
READ_ONLY: Final = os.O_RDONLY | os.O_CLOEXEC
READ_WRITE: Final = os.O_RDWR | os.O_CLOEXEC


class PooledFile:
    """The pool's state of a file.

    A user of the descriptor sets `busy` first and then reads `descriptor`. The pool clears `descriptor` first and then reads `busy`. The
    second of the two always sees the change of the first, so that a write needs no lock.
    """

    __slots__ = ("busy", "closed", "descriptor", "flags", "path", "pins", "slot", "used")

    def __init__(self, path: str, flags: int) -> None:
        self.path = path
        self.flags = flags
        self.descriptor = NO_DESCRIPTOR
        self.busy = False
        self.used = False  # since it was opened or the clock's hand passed; so a scan over many files does not close those in use
        self.pins = 0
        self.slot = -1  # its index in the clock
        self.closed = False


class FilePool:
    """Opens descriptors on demand and keeps at most `max_open`, or more while threads pin them.

    `spares` descriptors of /dev/null are held from the first use on, for when the process has no other left. With more than `share` files
    open the pool keeps no descriptor numbered `ceiling` or higher, because those are for connections: the system returns the lowest free
    number, so a number shows how many are open.
    """

    def __init__(self, max_open: int = MAX_OPEN, spares: int = 0, share: int = 1, ceiling: int = NO_CEILING) -> None:
        if max_open < 1:
            raise ValueError(f"max_open must be at least 1, not {max_open}")
        self.max_open = min(max_open, _share_of_process_limit())
        self.spares_max = spares
        self.share = share
        self.ceiling = ceiling
        self._spares: list[int] = []
        self._clock: list[PooledFile] = []
        self._hand = 0
        self._lock = threading.Lock()

    @property
    def open_count(self) -> int:
        return len(self._clock)

    def attempt(self, call: Callable[[], T]) -> T:
        """Makes a call that opens descriptors itself. If none is left, the pool closes one and repeats the call."""
        while True:
            try:
                result = call()
            except OSError as error:
                with self._lock:
                    if not is_shortage(error) or not self._make_room():
                        raise
                continue
            if len(self._spares) < self.spares_max:
                with self._lock:
                    self._refill()
            return result

    def give_back(self, count: int) -> int:
        """Closes up to `count` descriptors for connections, down to `share`; returns how many it closed."""
        closed = 0
        with self._lock:
            while closed < count and len(self._clock) > self.share and self._evict():
                closed += 1
        return closed

    def open(self, file: PooledFile, flags: int = 0) -> int:
        """Opens the descriptor of a file on which the caller has set `busy`."""
        with self._lock:
            return self._open(file, flags)

    def pin(self, file: PooledFile) -> None:
        """Opens the file and keeps it open."""
        with self._lock:
            self._open(file, 0)
            file.pins += 1

    def unpin(self, file: PooledFile) -> None:
        with self._lock:
            file.pins -= 1
            if file.closed and file.pins == 0:
                self._release(file)

    def close(self, file: PooledFile) -> None:
        with self._lock:
            file.closed = True
            if file.pins == 0:
                self._release(file)

    def _open(self, file: PooledFile, flags: int) -> int:
        if file.descriptor == NO_DESCRIPTOR:
            if file.closed:
                raise ValueError(f"{file.path} is closed")
            while len(self._clock) >= self.max_open and self._evict():
                pass
            file.descriptor = self._system_open(file, flags)
            file.used = False
            if file.descriptor >= self.ceiling and len(self._clock) >= self.share and self._evict():
                file.descriptor = _lowered(file.descriptor)
            file.slot = len(self._clock)
            self._clock.append(file)
            if len(self._spares) < self.spares_max:
                self._refill()
        return file.descriptor

    def _system_open(self, file: PooledFile, flags: int) -> int:
        """Makes room and tries again if the process has fewer descriptors left than the pool may open."""
        while True:
            try:
                return os.open(file.path, file.flags | flags, FILE_MODE)
            except OSError as error:
                if not is_shortage(error) or not self._make_room():
                    raise

    def _make_room(self) -> bool:
        """Closes a file that was not used lately, otherwise a spare."""
        if self._evict():
            return True
        if not self._spares:
            return False
        os.close(self._spares.pop())
        return True

    def _refill(self) -> None:
        """Opens spares again, as long as there are descriptors."""
        with contextlib.suppress(OSError):
            while len(self._spares) < self.spares_max:
                spare = os.open(os.devnull, READ_ONLY)
                if spare >= self.ceiling:
                    os.close(spare)
                    return
                self._spares.append(spare)

    def _evict(self) -> bool:
        """The first turn of the clock clears `used` of every file; the second closes one, unless all are pinned."""
        for _ in range(2 * len(self._clock)):
            if self._hand >= len(self._clock):
                self._hand = 0
            file = self._clock[self._hand]
            self._hand += 1  # also past a file that is closed: the last of the clock takes its slot
            if not (file.used or file.pins) and self._release(file):
                return True
            file.used = False
        return False

    def _release(self, file: PooledFile) -> bool:
        descriptor = file.descriptor
        if descriptor == NO_DESCRIPTOR:
            return False
        file.descriptor = NO_DESCRIPTOR
        if file.busy and not file.closed:
            file.descriptor = descriptor
            return False
        last = self._clock.pop()
        if last is not file:
            self._clock[file.slot] = last
            last.slot = file.slot
        os.close(descriptor)
        return True


def _lowered(descriptor: int) -> int:
    """The same open file with the lowest number that is free."""
    with contextlib.suppress(OSError):
        lower = os.dup(descriptor)
        os.close(descriptor)
        return lower
    return descriptor


def _share_of_process_limit() -> int:
    """Half of the descriptors that the process may open: the other half is for connections."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2**31 if soft == resource.RLIM_INFINITY else max(1, soft // 2)
