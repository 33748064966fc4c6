# Compiled by mypyc: src/compiled.toml lists this module.
"""The leader's view of a follower: its log end offset, and when it was last caught up.

The leader has one for every other replica of a partition, and updates it with each fetch of that replica. The high watermark and the ISR
depend on these alone.
"""

from __future__ import annotations

from typing import Final

from barnabas.storage.log_offset import LogOffset

UNKNOWN_OFFSET: Final = -1
NEVER_MS: Final = -(2**61)  # before any monotonic time, which may begin at 0


class Replica:
    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.broker_epoch = -1
        self.log_start_offset = UNKNOWN_OFFSET
        self.end = LogOffset(UNKNOWN_OFFSET)
        self.last_caught_up_ms = NEVER_MS
        self._last_fetch_ms = NEVER_MS
        self._leader_end_at_last_fetch = 0

    @property
    def log_end_offset(self) -> int:
        return self.end.offset

    def fetched(self, end: LogOffset, log_start_offset: int, leader_end_offset: int, broker_epoch: int, monotonic_ms: int) -> None:
        """The replica fetches from `end` on, so it has all records before.

        It is caught up now if `end` is the leader's log end offset. Else it was caught up at its last fetch, if it has now what the leader
        had then: a replica that keeps up with a busy leader is always a little behind.
        """
        if end.offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, monotonic_ms)
        elif end.offset >= self._leader_end_at_last_fetch:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self._last_fetch_ms)
        self.end = end
        self.log_start_offset = log_start_offset
        self.broker_epoch = broker_epoch
        self._leader_end_at_last_fetch = max(leader_end_offset, self._leader_end_at_last_fetch)
        self._last_fetch_ms = monotonic_ms

    def reset(self, leader_end_offset: int, is_new_leader: bool, is_in_sync: bool, monotonic_ms: int) -> None:
        """A leader epoch begins. A new leader has no offsets of the replica yet. An in-sync replica counts as caught up now, so that it has
        replica.lag.time.max.ms for its first fetch."""
        self.last_caught_up_ms = monotonic_ms if is_in_sync else NEVER_MS
        if is_new_leader:
            self.end = LogOffset(UNKNOWN_OFFSET)
            self.log_start_offset = UNKNOWN_OFFSET
            self.broker_epoch = -1
            self._leader_end_at_last_fetch = UNKNOWN_OFFSET
            self._last_fetch_ms = NEVER_MS
        else:
            self._leader_end_at_last_fetch = leader_end_offset
            self._last_fetch_ms = monotonic_ms if is_in_sync else NEVER_MS

    def is_caught_up(self, leader_end_offset: int, monotonic_ms: int, lag_ms_max: int) -> bool:
        return leader_end_offset == self.end.offset or monotonic_ms - self.last_caught_up_ms <= lag_ms_max

    def __repr__(self) -> str:
        return f"Replica({self.broker_id}, log_end_offset={self.end.offset}, last_caught_up_ms={self.last_caught_up_ms})"
