# Compiled by mypyc: src/compiled.toml lists this module.
"""What the client of a request may do: the questions that handlers ask. Without an authorizer every answer is yes.

Kafka's AuthHelper. A handler that serves many resources checks `is_open` first, so that a broker without an authorizer pays nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.security.authorizer.authorizer import Action
from barnabas.security.acl import ResourceType
from barnabas.security.errors import ClusterAuthorization
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.requests.request import Request
    from barnabas.broker.security.authorizer.authorizer import Authorizer

CLUSTER_NAME: Final = "kafka-cluster"  # the only resource of type CLUSTER


class Access:
    """`authorizer` is None if authorizer.class.name is not set; then `is_open`."""

    __slots__ = ("authorizer", "is_open")

    def __init__(self, authorizer: Authorizer | None) -> None:
        self.authorizer = authorizer
        self.is_open = authorizer is None

    def allows(
        self,
        request: Request[Any],
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
        logs_allowed: bool = True,
        logs_denied: bool = True,
    ) -> bool:
        authorizer = self.authorizer
        if authorizer is None:
            return True
        session = request.session
        if authorizer.allows_unlogged(session, operation, resource_type, name):
            return True
        return authorizer.authorize(session, Action(operation, resource_type, name, logs_allowed, logs_denied, request.api.name))

    def allows_on_cluster(self, request: Request[Any], operation: AclOperation, logs_denied: bool = True) -> bool:
        return self.allows(request, operation, ResourceType.CLUSTER, CLUSTER_NAME, True, logs_denied)

    def require_on_cluster(self, request: Request[Any], operation: AclOperation) -> None:
        """Raises ClusterAuthorization, with Kafka's text."""
        if not self.allows_on_cluster(request, operation):
            raise ClusterAuthorization(f"Request {request} needs {operation.name} permission.")

    def allows_on_any(self, request: Request[Any], operation: AclOperation, resource_type: ResourceType) -> bool:
        """Whether the operation is allowed on at least one resource of the type."""
        if self.authorizer is None:
            return True
        return self.authorizer.authorize_by_resource_type(request.session, operation, resource_type, request.api.name)

    def allowed(
        self,
        request: Request[Any],
        operation: AclOperation,
        resource_type: ResourceType,
        names: Iterable[str],
        logs_allowed: bool = True,
        logs_denied: bool = True,
    ) -> set[str]:
        """Those of the names on which the operation is allowed. Each name is decided and logged once, with its number of occurrences."""
        authorizer = self.authorizer
        if authorizer is None:
            return set(names)
        counts: dict[str, int] = {}
        for name in names:
            counts[name] = counts.get(name, 0) + 1
        session, api = request.session, request.api.name
        return {
            name
            for name, count in counts.items()
            if authorizer.authorize(session, Action(operation, resource_type, name, logs_allowed, logs_denied, api, count))
        }

    def describable(self, request: Request[Any]) -> Callable[[Iterable[str]], set[str]] | None:
        """A function that returns those of the topics which the client of the request may describe, also after the response; None if it may
        describe all topics. Only allowed topics are logged."""
        authorizer = self.authorizer
        if authorizer is None:
            return None
        session, api = request.session, request.api.name
        operation, resource_type = AclOperation.DESCRIBE, ResourceType.TOPIC

        def described(names: Iterable[str]) -> set[str]:
            return {name for name in names if authorizer.authorize(session, Action(operation, resource_type, name, True, False, api))}

        return described

    def operations(self, request: Request[Any], supported: int, resource_type: ResourceType, name: str) -> int:
        """The bit field of the operations, among the `supported` ones, that are allowed on a resource. Bit N is operation N."""
        if self.authorizer is None:
            return supported
        bits = 0
        for operation in AclOperation:
            if supported >> operation & 1 and self.allows(request, operation, resource_type, name, False, False):
                bits |= 1 << operation
        return bits
