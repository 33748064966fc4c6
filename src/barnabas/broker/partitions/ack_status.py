# Compiled by mypyc: src/compiled.toml lists this module.
"""Whether the records of an append may be acknowledged: not yet, yes, or no more, with the error to answer with."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode


class AckStatus:
    """`error` is 0 while the status is pending, and where the records may be acknowledged. Never changed, so that one can be shared."""

    __slots__ = ("error", "is_pending")

    def __init__(self, is_pending: bool, error: int = 0) -> None:
        self.is_pending = is_pending
        self.error = error

    @property
    def is_acknowledged(self) -> bool:
        return not self.is_pending and self.error == 0

    def __repr__(self) -> str:
        return "AckStatus(pending)" if self.is_pending else f"AckStatus(error={self.error})"


PENDING: Final = AckStatus(True)
ACKNOWLEDGED: Final = AckStatus(False)
NOT_LEADER: Final = AckStatus(False, int(ErrorCode.NOT_LEADER_OR_FOLLOWER))
TOO_FEW_IN_SYNC: Final = AckStatus(False, int(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND))
