# Compiled by mypyc: src/compiled.toml lists this module.
"""Transaction verification (KIP-890): the coordinator confirms a transaction before its first record is appended to a partition.

The partition creates a guard, the broker asks the coordinator, and the record is appended only if the guard is still valid: a marker
written in between removes it. Without this a late record would open a transaction that is never ended.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64


class VerificationGuard:
    """One attempt to verify one transaction. A guard is equal only to itself."""

    def verify(self, presented: VerificationGuard) -> bool:
        """Whether the guard that an append presents is this one."""
        return presented is self and presented is not SENTINEL


# Means "no guard": presented by an append that needs none. It never verifies an append that needs one.
SENTINEL: Final = VerificationGuard()


class VerificationStateEntry:
    """The verification under way for one producer, and the lowest sequence that waits for it.

    A higher sequence must not overtake one whose verification failed and is retried: the retry would be out of order for ever.
    """

    def __init__(self, monotonic_ms: i64, sequence: i64, epoch: i64, supports_epoch_bump: bool) -> None:
        self.created_ms = monotonic_ms
        self.guard = VerificationGuard()
        self.lowest_sequence = sequence
        self.epoch = epoch
        self.supports_epoch_bump = supports_epoch_bump  # transaction version 2

    def maybe_update_lowest_sequence_and_epoch(self, sequence: i64, epoch: i64) -> None:
        if epoch == self.epoch and sequence < self.lowest_sequence:
            self.lowest_sequence = sequence
        if epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence
