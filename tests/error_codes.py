"""Error codes by their numbers."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode


def code_of(number: int) -> ErrorCode:
    return ErrorCode(number)  # type: ignore[call-arg]  # mypy sees the arguments of a member's definition, not those of the lookup
