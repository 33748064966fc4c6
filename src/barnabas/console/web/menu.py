"""The menu: the pages that every page links to, with the keys that open them after `g`."""

from __future__ import annotations

from typing import Final

# Path, label and key. An entry is shown if there is a route for it.
MENU: Final[tuple[tuple[str, str, str], ...]] = (
    ("/", "Overview", "o"),
    ("/topics", "Topics", "t"),
    ("/groups", "Groups", "g"),
    ("/pipelines", "Pipelines", "p"),
    ("/dead-letters", "Dead letters", "d"),
    ("/brokers", "Brokers", "b"),
    ("/transactions", "Transactions", "x"),
    ("/access", "Access", "a"),
    ("/quotas", "Quotas", "u"),
    ("/reassignments", "Reassignments", "r"),
    ("/telemetry", "Telemetry", "m"),
)


def section(path: str) -> str:
    """The entry of the menu that a path belongs to; empty if none does."""
    if path == "/":
        return "/"
    return max((entry for entry, _, _ in MENU if entry != "/" and (path == entry or path.startswith(f"{entry}/"))), key=len, default="")
