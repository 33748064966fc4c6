# Compiled by mypyc: src/compiled.toml lists this module.
"""Transaction verification (KIP-890): proof that the coordinator knew of a transaction when its first record was appended here.

A partition hands out a guard, asks the coordinator, and takes the record only if the guard it handed out still stands: a marker written in
between removes it. Without this a late record would open a transaction nobody will ever end.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64


class VerificationGuard:
    """One attempt to verify one transaction. Every guard is unlike any other; it is equal to nothing but itself."""

    def verify(self, presented: VerificationGuard) -> bool:
        """Whether a guard that comes back with a record is this one."""
        return presented is self and presented is not SENTINEL


# Stands for "no guard": presented by an append that needs none, and never good for one that does.
SENTINEL: Final = VerificationGuard()


class VerificationStateEntry:
    """The verification under way for one producer, and the lowest sequence that waits for it.

    A higher sequence must not overtake one whose verification failed and will be retried, or the retry would be out of order for ever.
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
