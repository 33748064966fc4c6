"""What a case is, and where all of them are noted down: each is a conversation with a broker, told to both and compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tests.integration.transactions.play import Play

Case = Callable[[Play], None]
CASES: dict[str, Case] = {}  # by a name that says what is tried


def case(name: str) -> Callable[[Case], Case]:
    def note(function: Case) -> Case:
        assert name not in CASES, f"two cases are called {name}"
        CASES[name] = function
        return function

    return note


def cases(name: str, versions: Iterable[int]) -> Callable[[Callable[[Play, int], None]], None]:
    """The same case for each of some versions of an API: all of them, or those at which it changes."""

    def note(function: Callable[[Play, int], None]) -> None:
        for version in versions:
            case(f"{name} v{version}")(lambda play, version=version: function(play, version))  # type: ignore[misc]

    return note
