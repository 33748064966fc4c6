"""Log lines about other brokers that cannot be reached or that refuse the requests of this broker: at once, then ever more rarely.

Callers retry several times a second until an administrator acts. So the first line says what to do, and the others do not fill the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from barnabas.client.network.repeated_warnings import RepeatedWarnings
from barnabas.errors import KafkaError

_log = logging.getLogger(__name__)


class LinkWarnings:
    """`monotonic_ms` is the clock of the broker."""

    def __init__(self, monotonic_ms: Callable[[], int]) -> None:
        self._monotonic_ms = monotonic_ms
        self._warnings = RepeatedWarnings()

    def failed(self, level: int, broker_id: int, request_name: str, error: KafkaError) -> None:
        """A request got no response."""
        if self._is_due(broker_id, f"{request_name}: {type(error).__name__}"):
            _log.log(level, "%s to broker %d failed, and is tried again: %s", request_name, broker_id, error)

    def refused(self, broker_id: int, request_name: str) -> None:
        """The authorizer of the other broker denied a request."""
        if self._is_due(broker_id, request_name):
            _log.error(
                "Broker %d refuses %s: this broker is not authorized for ClusterAction. Add its principal, which the authorizer log of "
                "broker %d names, to super.users of all brokers, or allow it: barnabas acls --add --allow-principal User:NAME --operation "
                "ClusterAction --cluster",
                broker_id,
                request_name,
                broker_id,
            )

    def _is_due(self, broker_id: int, reason: str) -> bool:
        return self._warnings.due(str(broker_id), reason, self._monotonic_ms()) is not None
