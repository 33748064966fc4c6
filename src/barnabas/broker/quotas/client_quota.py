"""The quotas of one type: finds the sensor that the requests of a client are charged to, as Kafka's ClientQuotaManager does.

Clients that share a quota share a sensor. A client without a quota has none, and nothing is measured for it. Nothing here reads a clock:
callers pass the monotonic time.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice
from typing import Final, Generic, TypeVar

from barnabas.broker.quotas.client_quota_callback import ClientQuotaEntity
from barnabas.broker.quotas.quota_rules import QuotaKey, QuotaRules
from barnabas.security.principal import KafkaPrincipal

INACTIVE_MS: Final = 3_600_000  # a sensor that was not used for an hour is dropped, as in Kafka
THROTTLE_MAX_MS: Final = 2**31 - 1  # throttle_time_ms is an int32
_KEY_LENGTH: Final = 256  # a sensor counts once more for each 256 characters of its key: long client ids take the place of several


class QuotaSensor:
    """What the clients of one quota have used. `bound` is None while they are not limited."""

    def __init__(self, bound: float | None, monotonic_ms: int) -> None:
        self.bound = bound
        self.used_ms = monotonic_ms
        self.generation = 0  # of the bounds: an older one is looked up again
        self.weight = 1

    def bound_changed(self, bound: float | None, monotonic_ms: int) -> None:
        self.bound = bound


S = TypeVar("S", bound=QuotaSensor)


class ClientQuota(Generic[S]):
    """`is_in_use` is False while no quota of the type exists; callers on the path of a request check it first. `sensors_max` bounds the
    sensors: the one unused for longest is dropped. Nothing is lost by it unless so many are in use within the windows of the quota,
    because a sensor that was not used for that long is equal to a new one."""

    def __init__(self, rules: QuotaRules, sensors_max: int) -> None:
        self._rules = rules
        self.is_in_use = rules.is_in_use
        self._generation = 0
        self._sensors_max = sensors_max
        self._weight = 0
        self._sensors: OrderedDict[QuotaKey, S] = OrderedDict()  # the one unused for longest is first

    def __len__(self) -> int:
        """The number of sensors."""
        return len(self._sensors)

    def update(self, entity: ClientQuotaEntity, bound: float | None) -> None:
        """Sets the quota of an entity, or removes it."""
        self._rules.update(entity, bound)
        self.bounds_changed()

    def bounds_changed(self) -> None:
        """Every sensor looks up its bound again at its next use."""
        self._generation += 1
        self.is_in_use = self._rules.is_in_use
        if not self.is_in_use:
            self._sensors.clear()
            self._weight = 0

    def sensor(self, principal: KafkaPrincipal, client_id: str | None, monotonic_ms: int) -> S | None:
        """The sensor of a client; None where the client is not limited."""
        key = self._rules.key(principal, client_id or "")
        if key is None:
            return None
        if self._rules.have_changed():
            self.bounds_changed()
        sensor = self._sensors.get(key)
        if sensor is None:
            sensor = self._add(key, monotonic_ms)
        else:
            self._sensors.move_to_end(key)
            sensor.used_ms = monotonic_ms
            if sensor.generation != self._generation:
                sensor.generation = self._generation
                bound = self._rules.bound(key)
                if bound != sensor.bound:
                    sensor.bound_changed(bound, monotonic_ms)
        return None if sensor.bound is None else sensor

    def recent(self, count: int) -> list[tuple[QuotaKey, S]]:
        """The sensors of the clients that were active last, at most `count`."""
        return list(islice(reversed(self._sensors.items()), count))

    def expire(self, monotonic_ms: int) -> None:
        """Drops the sensors that were not used for an hour."""
        while self._sensors and monotonic_ms - next(iter(self._sensors.values())).used_ms >= INACTIVE_MS:
            self._drop_oldest()

    def _new_sensor(self, bound: float | None, monotonic_ms: int) -> S:
        raise NotImplementedError

    def _add(self, key: QuotaKey, monotonic_ms: int) -> S:
        self.expire(monotonic_ms)
        weight = 1 + sum(map(len, key)) // _KEY_LENGTH
        while self._sensors and self._weight + weight > self._sensors_max:
            self._drop_oldest()
        self._sensors[key] = sensor = self._new_sensor(self._rules.bound(key), monotonic_ms)
        sensor.generation, sensor.weight = self._generation, weight
        self._weight += weight
        return sensor

    def _drop_oldest(self) -> None:
        _, sensor = self._sensors.popitem(last=False)
        self._weight -= sensor.weight
