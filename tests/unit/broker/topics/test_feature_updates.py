"""Each refusal has Apache Kafka 4.2's words."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from barnabas.broker.topics.feature_updates import (
    SAFE_DOWNGRADE,
    UNSAFE_DOWNGRADE,
    UPGRADE,
    FeatureUpdate,
    InvalidUpdateVersion,
    new_levels,
    safe_downgrades,
)
from barnabas.broker.topics.features import Levels

SUPPORTED = {"group.version": Levels(0, 1), "transaction.version": Levels(0, 2)}
FINALIZED = {"group.version": 1, "transaction.version": 1}
CONTROLLER = 1


def changed(brokers: Mapping[int, Mapping[str, Levels]] | None = None, **updates: tuple[int, int]) -> dict[str, int]:
    named = {name.replace("_", "."): FeatureUpdate(*update) for name, update in updates.items()}
    return new_levels(named, FINALIZED, SUPPORTED, CONTROLLER, {CONTROLLER: SUPPORTED} if brokers is None else brokers)


def test_levels_go_up_and_down_and_the_others_stay() -> None:
    assert changed(transaction_version=(2, UPGRADE)) == {"group.version": 1, "transaction.version": 2}
    assert changed(group_version=(0, SAFE_DOWNGRADE)) == {"group.version": 0, "transaction.version": 1}
    assert changed(transaction_version=(0, UNSAFE_DOWNGRADE), group_version=(1, UPGRADE)) == {"group.version": 1, "transaction.version": 0}
    assert changed() == FINALIZED


def test_the_level_that_is_set_already_is_accepted_as_an_upgrade_and_as_a_downgrade() -> None:
    assert changed(group_version=(1, UPGRADE)) == changed(group_version=(1, SAFE_DOWNGRADE)) == FINALIZED


@pytest.mark.parametrize(
    ("feature", "level", "upgrade_type", "reason"),
    [
        ("group.version", 0, 0, "The controller does not support the given upgrade type."),
        ("group.version", 0, 4, "The controller does not support the given upgrade type."),
        ("group.version", -1, SAFE_DOWNGRADE, "A feature version cannot be less than 0."),
        ("group.version", 2, UPGRADE, "Local controller 1 only supports versions 0-1"),
        ("cats", 1, UPGRADE, "Local controller 1 does not support this feature."),
        ("cats", 0, SAFE_DOWNGRADE, "Feature cats not found."),
        (
            "group.version",
            0,
            UPGRADE,
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade.",
        ),
        ("transaction.version", 2, SAFE_DOWNGRADE, "Can't downgrade to a newer version."),
    ],
)
def test_a_level_that_cannot_be_set_is_refused(feature: str, level: int, upgrade_type: int, reason: str) -> None:
    with pytest.raises(InvalidUpdateVersion) as caught:
        new_levels({feature: FeatureUpdate(level, upgrade_type)}, FINALIZED, SUPPORTED, CONTROLLER, {CONTROLLER: SUPPORTED})
    start = "The update failed for all features since the following feature had an error: Invalid update version"
    assert str(caught.value) == f"{start} {level} for feature {feature}. {reason}"


def test_a_level_that_one_broker_does_not_support_is_refused() -> None:
    with pytest.raises(InvalidUpdateVersion, match=r"Broker 2 only supports versions 0-1$"):
        changed({1: SUPPORTED, 2: {"transaction.version": Levels(0, 1)}}, transaction_version=(2, UPGRADE))
    with pytest.raises(InvalidUpdateVersion, match=r"Broker 2 does not support this feature\.$"):
        changed({1: SUPPORTED, 2: {}}, transaction_version=(2, UPGRADE))


def test_only_safe_downgrades_have_to_leave_what_is_in_use() -> None:
    updates = {
        "group.version": FeatureUpdate(0, SAFE_DOWNGRADE),
        "transaction.version": FeatureUpdate(0, UNSAFE_DOWNGRADE),
        "other": FeatureUpdate(0, SAFE_DOWNGRADE),
    }
    assert safe_downgrades(updates, FINALIZED) == {"group.version": 0}
