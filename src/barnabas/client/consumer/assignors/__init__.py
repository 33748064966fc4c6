"""Kafka's assignors, and the base classes for assignors of applications."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Final

from barnabas.client.consumer.assignors.assignor import (
    AbstractPartitionAssignor,
    Assignment,
    ConsumerPartitionAssignor,
    RebalanceProtocol,
    Subscription,
)
from barnabas.client.consumer.assignors.cooperative_sticky_assignor import CooperativeStickyAssignor
from barnabas.client.consumer.assignors.range_assignor import RangeAssignor
from barnabas.client.consumer.assignors.round_robin_assignor import RoundRobinAssignor
from barnabas.client.consumer.assignors.sticky_assignor import StickyAssignor
from barnabas.client.errors import IllegalArgument, KafkaError

__all__ = [
    "AbstractPartitionAssignor",
    "Assignment",
    "ConsumerPartitionAssignor",
    "CooperativeStickyAssignor",
    "RangeAssignor",
    "RebalanceProtocol",
    "RoundRobinAssignor",
    "StickyAssignor",
    "Subscription",
    "common_protocol",
    "make_assignors",
]

_OWN: Final = {kind.__name__: kind for kind in (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor)}
_BY_NAME: Final = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
_JAVA_PACKAGE: Final = "org.apache.kafka.clients.consumer."


def make_assignors(strategies: Iterable[object], configs: Mapping[str, object]) -> list[ConsumerPartitionAssignor]:
    """The assignors of `partition.assignment.strategy`.

    Each strategy is an assignor, a class of one, its name on the wire (`range`), the name of Kafka's class, or the name of a Python class
    (`package.module.Class`). The method `configure` of an assignor, if it has one, receives the configs.
    """
    assignors: list[ConsumerPartitionAssignor] = []
    for strategy in strategies:
        assignor = _make(strategy)
        configure = getattr(assignor, "configure", None)
        if callable(configure):
            configure(configs)
        for earlier in assignors:
            if earlier.name == assignor.name:
                raise KafkaError(
                    f"The assignor name: '{assignor.name}' is used in more than one assignor: "
                    f"{type(earlier).__qualname__}, {type(assignor).__qualname__}"
                )
        assignors.append(assignor)
    return assignors


def common_protocol(assignors: Iterable[ConsumerPartitionAssignor]) -> RebalanceProtocol | None:
    """The most advanced protocol that all assignors support; None if there are no assignors."""
    every = list(assignors)
    if not every:
        return None
    common = set(every[0].supported_protocols).intersection(*(assignor.supported_protocols for assignor in every))
    if not common:
        names = ", ".join(assignor.name for assignor in every)
        raise IllegalArgument(f"Specified assignors [{names}] do not have commonly supported rebalance protocol")
    return max(common)


def _make(strategy: object) -> ConsumerPartitionAssignor:
    if isinstance(strategy, str):
        strategy = _find(strategy)
    assignor = strategy() if isinstance(strategy, type) else strategy
    if not isinstance(assignor, ConsumerPartitionAssignor):
        raise KafkaError(f"{strategy} is not an instance of {ConsumerPartitionAssignor.__qualname__}")
    return assignor


def _find(name: str) -> object:
    builtin = _BY_NAME.get(name) or _OWN.get(name.removeprefix(_JAVA_PACKAGE))
    if builtin is not None:
        return builtin
    module, _, kind = name.replace(":", ".").rpartition(".")
    try:
        return getattr(import_module(module), kind)
    except (ImportError, AttributeError, ValueError) as problem:
        raise KafkaError(
            f"{name} ClassNotFoundException exception occurred: partition.assignment.strategy takes assignors, their classes, "
            f"or one of {', '.join(_BY_NAME)}"
        ) from problem
