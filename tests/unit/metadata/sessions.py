"""A session that notes its events, and a look at everything below a node."""

from __future__ import annotations

from typing import TypeVar

from barnabas.metadata.local import LocalSession, LocalTree
from barnabas.metadata.tree import Exists, GetChildren, GetData, Stat, TreeRequest, WatchedEvent

R = TypeVar("R")


class Client:
    def __init__(self, tree: LocalTree) -> None:
        self.events: list[WatchedEvent] = []
        self.session: LocalSession = tree.open_session_now(self.events.append)

    def ask(self, request: TreeRequest[R]) -> R:
        return self.session.handle_now([request])[0].value

    def stat(self, path: str) -> Stat:
        stat = self.ask(Exists(path))
        assert stat is not None
        return stat

    def take_events(self) -> list[tuple[str, str]]:
        taken = [(event.type.value, event.path) for event in self.events]
        self.events.clear()
        return taken


def snapshot(client: Client, path: str) -> dict[str, object]:
    """Everything that can be asked about the tree below a path."""
    names = client.ask(GetChildren(path)).names
    nodes: dict[str, object] = {path: (client.ask(GetData(path)), names)}
    for name in names:
        nodes |= snapshot(client, f"{path.rstrip('/')}/{name}")
    return nodes
