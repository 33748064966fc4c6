"""The interface between the quotas of one type and what decides them: the configured quotas, or a ClientQuotaCallback."""

from __future__ import annotations

from barnabas.broker.quotas.client_quota_callback import ClientQuotaCallback, ClientQuotaEntity, ClientQuotaType
from barnabas.security.principal import KafkaPrincipal

QuotaKey = tuple[str, ...]  # equal for all clients that share a quota


class QuotaRules:
    @property
    def is_in_use(self) -> bool:
        """False where no client has a quota."""
        raise NotImplementedError

    def update(self, entity: ClientQuotaEntity, bound: float | None) -> None:
        """Sets the configured quota of an entity, or removes it."""
        raise NotImplementedError

    def key(self, principal: KafkaPrincipal, client_id: str) -> QuotaKey | None:
        """The key of the clients that share a quota with this one; None where it has no quota."""
        raise NotImplementedError

    def bound(self, key: QuotaKey) -> float | None:
        """The bound of a key that `key` has returned; None where it is not limited any more."""
        raise NotImplementedError

    def have_changed(self) -> bool:
        """Whether bounds have changed without a call of `update`, since the last call."""
        return False


class CallbackQuotas(QuotaRules):
    """A ClientQuotaCallback for one type of quotas. A key is its tags, names and values in turn."""

    def __init__(self, quota_type: ClientQuotaType, callback: ClientQuotaCallback) -> None:
        self._quota_type = quota_type
        self._callback = callback

    @property
    def is_in_use(self) -> bool:
        return True

    def update(self, entity: ClientQuotaEntity, bound: float | None) -> None:
        if bound is None:
            self._callback.remove_quota(self._quota_type, entity)
        else:
            self._callback.update_quota(self._quota_type, entity, bound)

    def key(self, principal: KafkaPrincipal, client_id: str) -> QuotaKey | None:
        tags = self._callback.quota_metric_tags(self._quota_type, principal, client_id)
        return tuple(text for tag in sorted(tags.items()) for text in tag)

    def bound(self, key: QuotaKey) -> float | None:
        return self._callback.quota_limit(self._quota_type, dict(zip(key[::2], key[1::2], strict=True)))

    def have_changed(self) -> bool:
        return self._callback.quota_reset_required(self._quota_type)
