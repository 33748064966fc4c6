"""The beginning of moves: throttles stay only with moves that need them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.cluster.config_entries import ConfigResourceType
from barnabas.errors import KafkaError, PolicyViolation
from barnabas.tools.balancing.cluster_load import BrokerPlace, ClusterLoad, PartitionLoad
from barnabas.tools.balancing.moving import Mover
from barnabas.tools.balancing.plan import Plan
from barnabas.topic_partition import TopicPartition

T0 = TopicPartition("t", 0)


class FakeAdmin:
    """A cluster without brokers. `failing` are the requests that it refuses."""

    def __init__(self, *failing: str, moving: bool = False) -> None:
        self.failing = set(failing)
        self.moving = moving
        self.settings: dict[tuple[str, str], str | None] = {}  # by topic or broker, and name

    def describe_cluster(self) -> Any:
        return SimpleNamespace(nodes=[])

    def list_topics(self, list_internal: bool) -> list[str]:
        return ["t"]

    def describe_configs(self, resources: list[Any]) -> Any:
        configs = {
            resource: {name: SimpleNamespace(value=value) for (owner, name), value in self.settings.items() if owner == resource.name}
            for resource in resources
        }
        return SimpleNamespace(successes=configs)

    def incremental_alter_configs(self, changes: dict[Any, list[Any]]) -> Any:
        for resource, operations in changes.items():
            for operation in operations:
                if operation.value is None:
                    self.settings.pop((resource.name, operation.name), None)
                    continue
                if ConfigResourceType(resource.type).name in self.failing:
                    raise PolicyViolation("no throttles")
                self.settings[resource.name, operation.name] = operation.value
        return SimpleNamespace(all=lambda: None)

    def list_partition_reassignments(self) -> dict[TopicPartition, Any]:
        if "LIST" in self.failing:
            raise KafkaError("not now")
        return {T0: object()} if self.moving else {}

    def alter_partition_reassignments(self, targets: Any, allow_replication_factor_change: bool = True) -> Any:
        raise KafkaError("the request timed out")


def begun(admin: FakeAdmin) -> None:
    load = ClusterLoad((BrokerPlace(1), BrokerPlace(2)), (PartitionLoad(T0, (1,), 1, 100, 0),))
    Mover(cast("Admin", admin), 1.0)._begin(Plan.between(load, {T0: (2,)}), 1024, {1, 2})


def test_throttles_that_are_set_in_part_are_removed() -> None:
    admin = FakeAdmin("BROKER")
    with pytest.raises(PolicyViolation):
        begun(admin)
    assert admin.settings == {}


def test_throttles_of_moves_that_did_not_begin_are_removed() -> None:
    admin = FakeAdmin()
    with pytest.raises(KafkaError, match="timed out"):
        begun(admin)
    assert not any(owner == "t" for owner, _ in admin.settings)


@pytest.mark.parametrize("admin", [FakeAdmin(moving=True), FakeAdmin("LIST")])
def test_throttles_stay_with_moves_that_may_have_begun(admin: FakeAdmin) -> None:
    with pytest.raises(KafkaError, match="timed out"):
        begun(admin)
    assert any(owner == "t" for owner, _ in admin.settings)
