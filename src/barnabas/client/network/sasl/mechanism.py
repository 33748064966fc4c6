"""What a mechanism of SASL is: it says something, is told something, until it is done. It touches no socket."""

from __future__ import annotations

from typing import Protocol


class Mechanism(Protocol):
    """One exchange. Raises SaslAuthentication where the broker's words are wrong: it has to prove itself, too."""

    is_done: bool

    def begin(self) -> bytes:
        """The first words of the client."""

    def answer(self, challenge: bytes) -> bytes | None:
        """What to say to a challenge; None for nothing more. May compute for a while, and so is called on a thread."""
