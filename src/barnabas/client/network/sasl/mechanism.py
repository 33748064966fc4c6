"""The interface of SASL mechanisms: an exchange of messages without I/O."""

from __future__ import annotations

from typing import Protocol


class Mechanism(Protocol):
    """One exchange. Raises SaslAuthentication if the broker's message is invalid: the broker must authenticate itself, too."""

    is_done: bool

    def begin(self) -> bytes:
        """The first message of the client."""

    def answer(self, challenge: bytes) -> bytes | None:
        """The response to a challenge; None if there is none. Called in a thread, because it may compute for a while."""
