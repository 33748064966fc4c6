# Compiled by mypyc: src/compiled.toml lists this module.
"""The decisions of an authorizer that are still valid, per principal and host, then per operation and resource.

A session keeps the decisions of its principal and host. `clear` begins a new generation: decisions of an older one are not used any more,
whichever session keeps them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.security.authorizer.acl_index import Decision
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation
from barnabas.security.principal import KafkaPrincipal

if TYPE_CHECKING:
    from barnabas.broker.security.session import Session

# Of all clients. A full cache is emptied. Measured: 10 MB if 50 clients use 1,000 topics each, 59 MB if each decision is of another client
# and about a name of 249 characters.
DECISIONS_MAX: Final = 50_000
NAME_MAX: Final = 249  # characters; longer names are not valid for topics and would let a client fill memory


class ClientDecisions:
    """The decisions about one principal at one host, by `_kind` and then by the name of the resource. All sessions of that principal and
    host share them."""

    __slots__ = ("by_kind", "generation")

    def __init__(self, generation: object) -> None:
        self.generation = generation
        self.by_kind: dict[int, dict[str, Decision]] = {}


class DecisionCache:
    __slots__ = ("_clients", "_generation", "size")

    def __init__(self) -> None:
        self.size = 0
        self._generation = object()
        self._clients: dict[tuple[KafkaPrincipal, str], ClientDecisions] = {}

    def get(self, session: Session, operation: AclOperation, resource_type: ResourceType, name: str) -> Decision | None:
        decisions = session.decisions
        if decisions is None or decisions.generation is not self._generation:
            decisions = session.decisions = self._of_client(session)
        by_name = decisions.by_kind.get(_kind(operation, resource_type))
        return None if by_name is None else by_name.get(name)

    def add(self, session: Session, operation: AclOperation, resource_type: ResourceType, name: str, decision: Decision) -> None:
        if len(name) > NAME_MAX:
            return
        if self.size >= DECISIONS_MAX:
            self.clear()
        session.decisions = decisions = self._of_client(session)
        decisions.by_kind.setdefault(_kind(operation, resource_type), {})[name] = decision
        self.size += 1

    def clear(self) -> None:
        """Called when an ACL changes."""
        for decisions in self._clients.values():
            decisions.by_kind.clear()  # idle sessions keep the object, whose memory must not outlive its generation
        self._generation = object()
        self._clients.clear()
        self.size = 0

    def _of_client(self, session: Session) -> ClientDecisions:
        client = (session.principal, session.host)
        decisions = self._clients.get(client)
        if decisions is None:
            if len(self._clients) >= DECISIONS_MAX:
                self.clear()
            decisions = self._clients[client] = ClientDecisions(self._generation)
        return decisions


def _kind(operation: int, resource_type: int) -> int:
    """One number for both. The hash of a member of an Enum is computed in Python, which took longer than the rest of a look-up."""
    return operation << 8 | resource_type
