# Compiled by mypyc: src/compiled.toml lists this module.
"""The interface of authorizers. `authorizer.class.name` names one of Kafka's classes, which `AclAuthorizer` stands for, or a Python class.

An authorizer decides without waiting: handlers call `authorize` on the event loop. Changes of ACLs are awaited, because they are written to
the metadata store.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from barnabas.broker.security.authorizer.acl_rules import WILDCARD_PRINCIPAL, allows_any, is_about
from barnabas.security.acl import AclBinding, AclBindingFilter, PatternType, ResourcePatternFilter, ResourceType
from barnabas.security.errors import SecurityDisabled
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.security.session import Session
    from barnabas.errors import KafkaError


class Action:
    """One operation on one resource. `logs_allowed` and `logs_denied`: whether the audit log has a line for either decision. Kafka leaves
    out decisions that only filter a list. `api` is the name of the request, for the audit log."""

    __slots__ = ("api", "logs_allowed", "logs_denied", "name", "operation", "reference_count", "resource_type")

    def __init__(
        self,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
        logs_allowed: bool = True,
        logs_denied: bool = True,
        api: str = "",
        reference_count: int = 1,
    ) -> None:
        self.operation = operation
        self.resource_type = resource_type
        self.name = name
        self.logs_allowed = logs_allowed
        self.logs_denied = logs_denied
        self.api = api
        self.reference_count = reference_count

    def __repr__(self) -> str:
        return f"{self.operation.name} on {self.resource_type.name} {self.name}"


class AclDeletion:
    """The result of one filter of DeleteAcls: the ACLs that it matched, each with the error that kept it from being deleted."""

    __slots__ = ("deleted", "error")

    def __init__(self, deleted: Sequence[tuple[AclBinding, KafkaError | None]] = (), error: KafkaError | None = None) -> None:
        self.deleted = deleted
        self.error = error


@mypyc_attr(allow_interpreted_subclasses=True)
class Authorizer:
    """The base class of authorizers. A Python class of `authorizer.class.name` derives from it and overrides at least `authorize`:

        class OfficeHours(Authorizer):
            def authorize(self, session, action):
                return session.host.startswith("10.") and 8 <= datetime.now().hour < 18

    The broker makes one instance without arguments, and calls `configure` and `start` before it serves the first request. An authorizer
    that keeps no ACLs leaves `acls`, `create_acls` and `delete_acls` as they are.
    """

    def configure(self, properties: Mapping[str, str]) -> None:
        """Gets the broker's properties. Raises InvalidConfig if the broker must not start with them."""

    async def start(self) -> None:
        """Reads all ACLs, and listens for changes. Returns before the broker serves its first request."""

    async def close(self) -> None:
        """Called at the shutdown, after the last request."""

    def authorize(self, session: Session, action: Action) -> bool:
        """Whether the action is allowed. Writes the audit log. An exception fails the request."""
        raise NotImplementedError

    def allows_unlogged(self, session: Session, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        """Whether the action is known to be allowed, and the audit log has no line for that. If not, the caller asks `authorize`. An
        authorizer that keeps decisions overrides it: the hot path then makes no Action."""
        return False

    def authorize_by_resource_type(self, session: Session, operation: AclOperation, resource_type: ResourceType, api: str = "") -> bool:
        """Whether the operation is allowed on at least one resource of the type (KIP-679). Here, as in Kafka: whether `authorize` allows it
        on a resource of any name, or an ACL in `acls` allows it on a resource that no ACL denies."""
        if self.authorize(session, Action(operation, resource_type, "hardcode", True, False, api, 0)):
            return True
        bindings = self.acls(AclBindingFilter(ResourcePatternFilter(resource_type, None, PatternType.ANY)))
        principals = (str(session.principal), WILDCARD_PRINCIPAL)
        about = [binding for binding in bindings if is_about(binding.entry, principals, session.host)]
        return allows_any(about, operation)

    def acls(self, acl_filter: AclBindingFilter) -> Iterable[AclBinding]:
        """The ACLs that the filter matches."""
        return ()

    async def create_acls(self, session: Session, bindings: Sequence[AclBinding]) -> list[KafkaError | None]:
        """The error of each binding, in order. On return this broker obeys the new ACLs."""
        return [self._no_acls() for _ in bindings]

    async def delete_acls(self, session: Session, filters: Sequence[AclBindingFilter]) -> list[AclDeletion]:
        """The result of each filter, in order. On return this broker does not obey the deleted ACLs any more."""
        return [AclDeletion(error=self._no_acls()) for _ in filters]

    def _no_acls(self) -> KafkaError:
        return SecurityDisabled(f"The authorizer {type(self).__name__} keeps no ACLs.")
