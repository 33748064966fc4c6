from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import pytest

from barnabas.broker.topics.features import SUPPORTED, UNKNOWN_EPOCH, FeatureLevels, Levels, UnsupportedFeatures
from barnabas.endpoint import EndPoint
from barnabas.metadata import paths
from barnabas.metadata.client import TreeClient
from barnabas.metadata.errors import BadVersion
from barnabas.metadata.local import LocalTree
from barnabas.metadata.znodes.cluster import BrokerRegistration, FeatureZNode, decode_features, encode_broker, encode_features

GROUPS = {"group.version": Levels(0, 1)}
BOTH = {"group.version": Levels(0, 1), "transaction.version": Levels(0, 2)}


def supported_by(levels: Mapping[str, Levels]) -> dict[str, dict[str, int]]:
    """As a broker registers it."""
    return {name: {"min_version": low, "max_version": high} for name, (low, high) in levels.items()}


def on_a_tree(scenario: Callable[[TreeClient], Awaitable[None]]) -> None:
    async def run() -> None:
        client = TreeClient(LocalTree(now_ms=lambda: 0), lambda: None)
        await client.connect()
        try:
            await scenario(client)
        finally:
            await client.close()

    asyncio.run(run())


def test_nothing_is_promised_that_does_not_work_yet() -> None:
    assert SUPPORTED == {"group.version": (0, 1), "transaction.version": (0, 2)}


def test_a_broker_without_features_writes_none() -> None:
    async def scenario(tree: TreeClient) -> None:
        features = FeatureLevels(tree, {})
        await features.start()
        assert (features.finalized, features.epoch) == ({}, UNKNOWN_EPOCH)
        assert await tree.get(paths.BARNABAS_FEATURES) is None

    on_a_tree(scenario)


def test_the_first_broker_of_a_cluster_sets_the_highest_levels() -> None:
    async def scenario(tree: TreeClient) -> None:
        features = FeatureLevels(tree, GROUPS)
        await features.start()
        assert (features.finalized, features.epoch) == ({"group.version": 1}, 0)
        node = await tree.get(paths.BARNABAS_FEATURES)
        assert node is not None
        assert decode_features(node.data, paths.BARNABAS_FEATURES) == FeatureZNode({"group.version": 1})

    on_a_tree(scenario)


def test_later_brokers_keep_what_the_cluster_agreed_on() -> None:
    async def scenario(tree: TreeClient) -> None:
        await tree.create_recursive(paths.BARNABAS_FEATURES, encode_features(FeatureZNode({"group.version": 0})))
        features = FeatureLevels(tree, GROUPS)
        await features.start()
        assert (features.finalized, features.epoch) == ({"group.version": 0}, 0)

    on_a_tree(scenario)


def test_a_feature_that_the_cluster_never_heard_of_comes_with_the_first_broker_that_has_it() -> None:
    async def scenario(tree: TreeClient) -> None:
        await tree.create_recursive(paths.BARNABAS_FEATURES, encode_features(FeatureZNode({"group.version": 0})))
        features = FeatureLevels(tree, BOTH)
        await features.start()
        assert (features.finalized, features.epoch) == ({"group.version": 0, "transaction.version": 2}, 1)

    on_a_tree(scenario)


@pytest.mark.parametrize(
    ("others", "level"),
    [({}, None), ({"transaction.version": {"min_version": 0, "max_version": 1}}, None), (supported_by(BOTH), 2)],
)
def test_a_new_feature_waits_until_all_brokers_have_it(others: dict[str, dict[str, int]], level: int | None) -> None:
    async def scenario(tree: TreeClient) -> None:
        await tree.create_recursive(paths.BARNABAS_FEATURES, encode_features(FeatureZNode({"group.version": 1})))
        registration = BrokerRegistration((EndPoint("PLAINTEXT", "other", 9092),), 5, features=others)
        await tree.create_recursive(paths.broker_id(7), encode_broker(registration))
        features = FeatureLevels(tree, BOTH)
        await features.start()
        assert features.finalized.get("transaction.version") == level

    on_a_tree(scenario)


def test_a_level_that_is_not_supported_keeps_the_broker_from_starting() -> None:
    async def scenario(tree: TreeClient) -> None:
        await tree.create_recursive(paths.BARNABAS_FEATURES, encode_features(FeatureZNode({"group.version": 2})))
        with pytest.raises(UnsupportedFeatures, match=r"\{'group.version': 2\}.*install the version"):
            await FeatureLevels(tree, GROUPS).start()

    on_a_tree(scenario)


def test_a_change_is_seen_by_every_broker_with_its_epoch() -> None:
    async def scenario(tree: TreeClient) -> None:
        features = FeatureLevels(tree, GROUPS)
        await features.start()
        await tree.set_data(paths.BARNABAS_FEATURES, encode_features(FeatureZNode({})))
        await tree.set_data(paths.BARNABAS_FEATURES, encode_features(FeatureZNode({"group.version": 1})))
        await settled(features)
        assert (features.finalized, features.epoch) == ({"group.version": 1}, 2)
        await tree.delete(paths.BARNABAS_FEATURES)
        await settled(features)
        assert (features.finalized, features.epoch) == ({}, UNKNOWN_EPOCH)
        await tree.create(paths.BARNABAS_FEATURES, encode_features(FeatureZNode({})))
        await settled(features)
        assert features.epoch == 0
        await features.close()

    on_a_tree(scenario)


def test_a_change_that_is_not_understood_is_reported_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(tree: TreeClient) -> None:
        features = FeatureLevels(tree, GROUPS)
        await features.start()
        await tree.set_data(paths.BARNABAS_FEATURES, b"?")
        await settled(features)
        assert features.finalized == {"group.version": 1}

    on_a_tree(scenario)
    assert "Feature levels stay at {'group.version': 1}" in caplog.text


def test_levels_are_changed_unless_somebody_was_faster() -> None:
    async def scenario(tree: TreeClient) -> None:
        features = FeatureLevels(tree, GROUPS)
        await features.finalize({"group.version": 1})
        assert (features.finalized, features.epoch) == ({"group.version": 1}, 0)
        await features.finalize({})
        assert (features.finalized, features.epoch) == ({}, 1)
        await tree.set_data(paths.BARNABAS_FEATURES, encode_features(FeatureZNode({})))
        with pytest.raises(BadVersion):
            await features.finalize({"group.version": 1})
        with pytest.raises(UnsupportedFeatures):
            await features.finalize({"metadata.version": 1})

    on_a_tree(scenario)


async def settled(features: FeatureLevels) -> None:
    """Until the reading that the last change asked for is done."""
    reading = features._reading
    assert reading is not None
    await asyncio.wait_for(asyncio.wait([reading]), 60)
