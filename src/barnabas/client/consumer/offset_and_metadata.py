"""An offset as a consumer commits it: the next one to read, the leader epoch it was read under, and a word of the application's own."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.client.errors import IllegalArgument


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    offset: int
    metadata: str = ""
    leader_epoch: int | None = None

    def __post_init__(self) -> None:
        if self.offset < 0:
            raise IllegalArgument("Invalid negative offset")
