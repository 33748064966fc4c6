from __future__ import annotations

import pytest

from barnabas.metrics.registry import Family, Kind, Registry, single


def test_a_metric_is_there_once() -> None:
    registry = Registry()
    family = Family("kafka.server", "KafkaServer", "BrokerState", Kind.GAUGE, "The state.", single(lambda: 3))
    registry.add([family])
    assert ([listed.name for listed in registry], len(registry), list(family.read())) == (["BrokerState"], 1, [((), 3)])
    with pytest.raises(ValueError, match="is there twice"):
        registry.add([family])
