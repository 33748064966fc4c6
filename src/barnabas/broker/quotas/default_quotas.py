"""The configured quotas of users and clients, and Kafka's order of precedence among them.

    1. /config/users/<user>/clients/<client-id>
    2. /config/users/<user>/clients/<default>
    3. /config/users/<user>
    4. /config/users/<default>/clients/<client-id>
    5. /config/users/<default>/clients/<default>
    6. /config/users/<default>
    7. /config/clients/<client-id>
    8. /config/clients/<default>

The first one that exists decides, also which clients share it: all clients of a user at 3 and 6, all users of a client id at 7 and 8, and
each pair has its own at the others. A client without an id has no quota of a client id.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.broker.quotas.client_quota_callback import DEFAULT, ClientQuotaEntity, DefaultName
from barnabas.broker.quotas.quota_rules import QuotaKey, QuotaRules
from barnabas.security.principal import KafkaPrincipal

_EntityKey = tuple[str | DefaultName | None, str | DefaultName | None]


class DefaultQuotas(QuotaRules):
    """The quotas of one type. A key is a user and a client id; "" stands for all of them."""

    def __init__(self) -> None:
        self._bounds: dict[_EntityKey, float] = {}
        # The number of quotas at each level. Levels without any are not looked up: most clusters have one.
        self._pairs = self._users = self._clients = 0

    @property
    def is_in_use(self) -> bool:
        return bool(self._bounds)

    def update(self, entity: ClientQuotaEntity, bound: float | None) -> None:
        before = len(self._bounds)
        if bound is None:
            self._bounds.pop((entity.user, entity.client_id), None)
        else:
            self._bounds[entity.user, entity.client_id] = bound
        added = len(self._bounds) - before
        if entity.client_id is None:
            self._users += added
        elif entity.user is None:
            self._clients += added
        else:
            self._pairs += added

    def key(self, principal: KafkaPrincipal, client_id: str) -> QuotaKey | None:
        user = principal.name
        bounds = self._bounds
        has_pairs = self._pairs > 0 and client_id != ""
        if has_pairs and ((user, client_id) in bounds or (user, DEFAULT) in bounds):
            return user, client_id
        if self._users and (user, None) in bounds:
            return user, ""
        if has_pairs and ((DEFAULT, client_id) in bounds or (DEFAULT, DEFAULT) in bounds):
            return user, client_id
        if self._users and (DEFAULT, None) in bounds:
            return user, ""
        if self._clients and client_id != "" and ((None, client_id) in bounds or (None, DEFAULT) in bounds):
            return "", client_id
        return None

    def bound(self, key: QuotaKey) -> float | None:
        user, client_id = key
        if user and client_id:
            entities: Sequence[_EntityKey] = ((user, client_id), (user, DEFAULT), (DEFAULT, client_id), (DEFAULT, DEFAULT))
        elif user:
            entities = ((user, None), (DEFAULT, None))
        else:
            entities = ((None, client_id), (None, DEFAULT))
        for entity in entities:
            bound = self._bounds.get(entity)
            if bound is not None:
                return bound
        return None
