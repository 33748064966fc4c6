# Compiled by mypyc: src/compiled.toml lists this module.
"""Kafka's AclAuthorizer and StandardAuthorizer: decides by the ACLs of the metadata store.

Decisions are cached per principal, host, operation and resource, until an ACL changes. A session keeps the cache of its principal and host,
so that a request is decided by one look-up.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.broker.security.authorizer.acl_index import DEFAULT_ALLOW, DEFAULT_DENY, SUPER_USER, AclIndex, Decision
from barnabas.broker.security.authorizer.acl_store import AclStore, Entries
from barnabas.broker.security.authorizer.acl_validation import exact_patterns, fault_of, fault_of_filter
from barnabas.broker.security.authorizer.audit_log import AuditLog
from barnabas.broker.security.authorizer.authorizer import AclDeletion, Action, Authorizer
from barnabas.broker.security.authorizer.decision_cache import DecisionCache
from barnabas.config_def import InvalidConfig
from barnabas.errors import IllegalArgument, KafkaError
from barnabas.metadata.client import TreeClient
from barnabas.security.acl import AccessControlEntry, AclBinding, AclBindingFilter, ResourcePattern, ResourceType
from barnabas.security.operations import AclOperation
from barnabas.security.principal import KafkaPrincipal

if TYPE_CHECKING:
    from barnabas.broker.security.session import Session

SUPER_USERS: Final = "super.users"
ALLOW_EVERYONE: Final = "allow.everyone.if.no.acl.found"
LOG_JSON: Final = "barnabas.authorizer.log.json"
CACHE_MAX: Final = 50_000  # decisions of authorize_by_resource_type. A full cache is emptied
SEARCH_SLICE: Final = 1000  # patterns; the event loop runs in between

_log = logging.getLogger(__name__)


class AclAuthorizer(Authorizer):
    def __init__(self, tree: TreeClient, monotonic_ms: Callable[[], int]) -> None:
        self._super_users: frozenset[KafkaPrincipal] = frozenset()
        self._default = DEFAULT_DENY
        self._audit = AuditLog()
        self._index = AclIndex()
        self._decisions = DecisionCache()
        self._any_decisions: dict[tuple[KafkaPrincipal, str, AclOperation, ResourceType], bool] = {}  # of authorize_by_resource_type
        self._store = AclStore(tree, monotonic_ms, self._acls_changed, self._acls_loaded)

    def configure(self, properties: Mapping[str, str]) -> None:
        self._super_users = frozenset(_principals(properties.get(SUPER_USERS, "")))
        self._default = DEFAULT_ALLOW if _flag(properties, ALLOW_EVERYONE) else DEFAULT_DENY
        self._audit = AuditLog(_flag(properties, LOG_JSON))
        self._index = AclIndex(self._default)

    async def start(self) -> None:
        await self._store.start()

    async def close(self) -> None:
        await self._store.close()

    def authorize(self, session: Session, action: Action) -> bool:
        operation, resource_type, name = action.operation, action.resource_type, action.name
        decision = self._decisions.get(session, operation, resource_type, name)
        if decision is None:
            decision = self._decide(session, operation, resource_type, name)
            self._decisions.add(session, operation, resource_type, name, decision)
        self._audit.write(session, action, decision)
        return decision.is_allowed

    def allows_unlogged(self, session: Session, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        decision = self._decisions.get(session, operation, resource_type, name)
        return decision is not None and decision.is_allowed and not self._audit.logs_allowed

    def authorize_by_resource_type(self, session: Session, operation: AclOperation, resource_type: ResourceType, api: str = "") -> bool:
        if self.authorize(session, Action(operation, resource_type, "hardcode", True, False, api, 0)):
            return True
        key = (session.principal, session.host, operation, resource_type)
        is_any_allowed = self._any_decisions.get(key)
        if is_any_allowed is None:
            is_any_allowed = self._index.allows_any(str(session.principal), session.host, operation, resource_type)
            if len(self._any_decisions) >= CACHE_MAX:
                self._any_decisions.clear()
            self._any_decisions[key] = is_any_allowed
        return is_any_allowed

    def acls(self, acl_filter: AclBindingFilter) -> Iterable[AclBinding]:
        return self._index.acls(acl_filter)

    async def create_acls(self, session: Session, bindings: Sequence[AclBinding]) -> list[KafkaError | None]:
        errors = [fault_of(binding) for binding in bindings]
        added: dict[ResourcePattern, list[AccessControlEntry]] = {}
        for binding, error in zip(bindings, errors, strict=True):
            if error is None:
                added.setdefault(binding.pattern, []).append(binding.entry)
        outcomes = await self._store.change({pattern: _Addition(entries).apply for pattern, entries in added.items()})
        return [error or outcomes[binding.pattern] for binding, error in zip(bindings, errors, strict=True)]

    async def delete_acls(self, session: Session, filters: Sequence[AclBindingFilter]) -> list[AclDeletion]:
        """Each ACL is in the result of every filter that matches it, as in Kafka 4.2."""
        removals = {pattern: _Removal(matching) for pattern, matching in (await self._matching(filters)).items()}
        errors = await self._store.change({pattern: removal.apply for pattern, removal in removals.items()})
        deleted: list[list[tuple[AclBinding, KafkaError | None]]] = [[] for _ in filters]
        unread: dict[int, KafkaError] = {}
        for pattern, removal in removals.items():
            for index, entry in removal.removed:
                deleted[index].append((AclBinding(pattern, entry), errors[pattern]))
            error = errors[pattern]
            if error is not None and not removal.removed:  # the store could not be read, so there may be ACLs that still hold
                unread.update(dict.fromkeys(removal.filters, error))
        faults = [fault_of_filter(acl_filter) or unread.get(index) for index, acl_filter in enumerate(filters)]
        return [AclDeletion(own, fault) for own, fault in zip(deleted, faults, strict=True)]

    async def _matching(self, filters: Sequence[AclBindingFilter]) -> dict[ResourcePattern, dict[int, AclBindingFilter]]:
        """The filters that match each pattern, with their positions. A filter that names its pattern costs no search, and matches also
        what another broker has created without this one having been notified yet."""
        matching: dict[ResourcePattern, dict[int, AclBindingFilter]] = {}
        for index, acl_filter in enumerate(filters):
            if acl_filter.is_unknown:
                continue
            for pattern in exact_patterns(acl_filter) or await self._searched(acl_filter):
                matching.setdefault(pattern, {})[index] = acl_filter
        return matching

    async def _searched(self, acl_filter: AclBindingFilter) -> list[ResourcePattern]:
        patterns = self._index.patterns()
        matching: list[ResourcePattern] = []
        for start in range(0, len(patterns), SEARCH_SLICE):
            matching.extend(pattern for pattern in patterns[start : start + SEARCH_SLICE] if acl_filter.pattern_filter.matches(pattern))
            await asyncio.sleep(0)
        return matching

    def _decide(self, session: Session, operation: AclOperation, resource_type: ResourceType, name: str) -> Decision:
        if session.principal in self._super_users:
            return SUPER_USER
        return self._index.decide(str(session.principal), session.host, operation, resource_type, name)

    def _acls_changed(self, pattern: ResourcePattern, entries: Entries) -> None:
        self._index.replace(pattern, entries)
        self._forget_decisions()

    def _acls_loaded(self, acls: Mapping[ResourcePattern, Entries]) -> None:
        index = AclIndex(self._default)
        for pattern, entries in acls.items():
            index.replace(pattern, entries)
        self._index = index
        self._forget_decisions()
        _log.info("Loaded %d ACLs of %d resource patterns", len(index), len(acls))

    def _forget_decisions(self) -> None:
        self._decisions.clear()
        self._any_decisions.clear()


class _Addition:
    __slots__ = ("_entries",)

    def __init__(self, entries: Sequence[AccessControlEntry]) -> None:
        self._entries = entries

    def apply(self, entries: Entries) -> Entries:
        return list(dict.fromkeys([*entries, *self._entries]))


class _Removal:
    """`filters` have their positions in the request. `removed` has the position of a filter with each entry that it matched."""

    __slots__ = ("filters", "removed")

    def __init__(self, filters: Mapping[int, AclBindingFilter]) -> None:
        self.filters = filters
        self.removed: list[tuple[int, AccessControlEntry]] = []

    def apply(self, entries: Entries) -> Entries:
        self.removed = [
            (index, entry) for index, acl_filter in self.filters.items() for entry in entries if acl_filter.entry_filter.matches(entry)
        ]
        removed = {entry for _, entry in self.removed}
        return [entry for entry in entries if entry not in removed]


def _principals(text: str) -> list[KafkaPrincipal]:
    """The principals of super.users, which are separated by semicolons because names of certificates contain commas."""
    try:
        return [KafkaPrincipal.parse(part.strip()) for part in text.split(";") if part.strip()]
    except IllegalArgument as error:
        raise InvalidConfig(f"Invalid value {text} for configuration {SUPER_USERS}: {error}; write it as in User:alice;User:bob") from error


def _flag(properties: Mapping[str, str], name: str) -> bool:
    text = properties.get(name, "false").strip().lower()
    if text not in ("true", "false"):
        raise InvalidConfig(f"Invalid value {properties[name]} for configuration {name}: expected true or false")
    return text == "true"
