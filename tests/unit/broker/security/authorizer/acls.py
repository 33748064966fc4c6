"""ACLs in short words, and an authorizer over a metadata store of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from barnabas.broker.security.authorizer.acl_authorizer import AclAuthorizer
from barnabas.broker.security.authorizer.authorizer import Action
from barnabas.broker.security.session import Session
from barnabas.metadata.client import TreeClient
from barnabas.metadata.local import LocalTree
from barnabas.security.acl import AccessControlEntry, AclBinding, AclPermissionType, PatternType, ResourcePattern, ResourceType
from barnabas.security.operations import AclOperation
from barnabas.security.principal import KafkaPrincipal

ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP


def acl(
    name: str,
    operation: AclOperation = AclOperation.READ,
    permission_type: AclPermissionType = ALLOW,
    *,
    principal: str = "User:alice",
    host: str = "*",
    pattern_type: PatternType = LITERAL,
    resource_type: ResourceType = TOPIC,
) -> AclBinding:
    return AclBinding(ResourcePattern(resource_type, name, pattern_type), AccessControlEntry(principal, host, operation, permission_type))


def session(principal: str = "User:alice", host: str = "10.0.0.1") -> Session:
    return Session(KafkaPrincipal.parse(principal), host)


def configured(properties: Mapping[str, str], tree: TreeClient, now_ms: Callable[[], int]) -> AclAuthorizer:
    authorizer = AclAuthorizer(tree, now_ms)
    authorizer.configure(properties)
    return authorizer


class Authorized:
    """An authorizer with its own event loop, to be used in a `with`. Several may share a `tree`, as brokers do."""

    def __init__(self, properties: Mapping[str, str] | None = None, tree: LocalTree | None = None) -> None:
        self.loop = asyncio.new_event_loop()
        self.wall_ms = 1_700_000_000_000
        self.tree = tree or LocalTree(lambda: self.wall_ms)
        self.client = TreeClient(self.tree, lambda: None)
        self.authorizer: AclAuthorizer
        self._properties = properties or {}

    def __enter__(self) -> Authorized:
        self.run(self.client.connect())
        self.run(self._start())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.run(self.authorizer.close())
        self.run(self.client.close())
        self.loop.close()

    def run(self, awaitable: Any) -> Any:
        return self.loop.run_until_complete(awaitable)

    def settle(self) -> None:
        """Runs the tasks that a watch has woken."""
        for _ in range(20):
            self.run(asyncio.sleep(0))

    def add(self, *bindings: AclBinding) -> None:
        assert self.run(self.authorizer.create_acls(session(), bindings)) == [None] * len(bindings)

    def allows(
        self,
        operation: AclOperation,
        name: str,
        principal: str = "User:alice",
        host: str = "10.0.0.1",
        resource_type: ResourceType = TOPIC,
    ) -> bool:
        return self.authorizer.authorize(session(principal, host), Action(operation, resource_type, name))

    def data(self, path: str) -> bytes | None:
        node = self.run(self.client.get(path))
        return node.data if node is not None else None

    async def _start(self) -> None:
        self.authorizer = configured(self._properties, self.client, lambda: self.wall_ms)
        await self.authorizer.start()
