"""No attack: the figures that the others are compared with."""

from __future__ import annotations

from collections.abc import AsyncGenerator


async def attack(bootstrap: str) -> AsyncGenerator[None, None]:
    yield
