"""An authorizer in memory: what a test grants is allowed, and nothing else. No operation implies another, so a test shows each check."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.broker.security.access import CLUSTER_NAME, Access
from barnabas.broker.security.authorizer.authorizer import Action, Authorizer
from barnabas.broker.security.session import Session
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation

ANONYMOUS = "User:ANONYMOUS"

Grant = tuple[str, AclOperation, ResourceType, str]


class Grants(Authorizer):
    """Stands for the authorizer. `actions` are the decisions it was asked for, in order."""

    def __init__(self, grants: Iterable[Grant]) -> None:
        self.grants = set(grants)
        self.actions: list[Action] = []

    def authorize(self, session: Session, action: Action) -> bool:
        self.actions.append(action)
        return (str(session.principal), action.operation, action.resource_type, action.name) in self.grants

    def authorize_by_resource_type(self, session: Session, operation: AclOperation, resource_type: ResourceType, api: str = "") -> bool:
        return any(grant[:3] == (str(session.principal), operation, resource_type) for grant in self.grants)


def grant(text: str, principal: str = ANONYMOUS) -> Grant:
    """The grant of `DESCRIBE topic t`, or `CREATE cluster`."""
    operation, resource_type, *name = text.split(" ", 2)
    return principal, AclOperation[operation], ResourceType[resource_type.upper()], name[0] if name else CLUSTER_NAME


def granting(*texts: str) -> Access:
    """The access of a broker whose clients, all of them anonymous, have these grants."""
    return Access(Grants(grant(text) for text in texts))


def decisions(access: Access) -> list[str]:
    """What the authorizer was asked, in order, as `grant` reads it."""
    assert isinstance(access.authorizer, Grants)
    return [_text(action) for action in access.authorizer.actions]


def _text(action: Action) -> str:
    is_cluster = action.resource_type is ResourceType.CLUSTER
    return f"{action.operation.name} {action.resource_type.name.lower()}" + ("" if is_cluster else f" {action.name}")
