"""The interface of authorizers. `authorizer.class.name` names one of Kafka's classes, which `acl_authorizer` stands for, or a Python class.

An authorizer decides without waiting: handlers call `authorize` on the event loop. Changes of ACLs are awaited, because they are written to
the metadata store.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from barnabas.security.acl import AclBinding, AclBindingFilter, PatternType, ResourceType
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.security.session import Session
    from barnabas.errors import KafkaError


@dataclass(frozen=True, slots=True)
class Action:
    """One operation on one resource. `logs_allowed` and `logs_denied`: whether the audit log has a line for either decision. Kafka leaves
    out decisions that only filter a list."""

    operation: AclOperation
    resource_type: ResourceType
    name: str
    logs_allowed: bool = True
    logs_denied: bool = True
    pattern_type: PatternType = PatternType.LITERAL
    reference_count: int = 1


@dataclass(frozen=True, slots=True)
class AclDeletion:
    """The result of one filter of DeleteAcls: the ACLs that it matched, each with the error that kept it from being deleted."""

    deleted: Sequence[tuple[AclBinding, KafkaError | None]] = ()
    error: KafkaError | None = None


class Authorizer(Protocol):
    async def start(self) -> None:
        """Reads all ACLs, and listens for changes. Returns before the broker serves its first request."""

    async def close(self) -> None: ...

    def authorize(self, session: Session, action: Action) -> bool:
        """Whether the action is allowed. Writes the audit log."""

    def authorize_by_resource_type(self, session: Session, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Whether the operation is allowed on at least one resource of the type (KIP-679)."""

    def acls(self, acl_filter: AclBindingFilter) -> Iterable[AclBinding]: ...

    async def create_acls(self, session: Session, bindings: Sequence[AclBinding]) -> list[KafkaError | None]:
        """The error of each binding, in order. On return this broker obeys the new ACLs."""

    async def delete_acls(self, session: Session, filters: Sequence[AclBindingFilter]) -> list[AclDeletion]: ...
