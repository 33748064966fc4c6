"""Decides changes of feature levels: which new levels a request of UpdateFeatures leads to, or why it is refused.

The rules and the messages are those of Kafka 4.2's FeatureControlManager. All updates of a request are made, or none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from barnabas.broker.topics.features import Levels
from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode

UPGRADE: Final = 1
SAFE_DOWNGRADE: Final = 2
UNSAFE_DOWNGRADE: Final = 3
_UPGRADE_TYPES: Final = frozenset({UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE})


class InvalidUpdateVersion(KafkaError):
    """INVALID_UPDATE_VERSION: the level cannot be set. The message names the feature and the reason."""

    code = int(ErrorCode.INVALID_UPDATE_VERSION)


class FeatureUpdate(NamedTuple):
    level: int
    upgrade_type: int


def new_levels(
    updates: Mapping[str, FeatureUpdate],
    finalized: Mapping[str, int],
    supported: Mapping[str, Levels],
    controller_id: int,
    brokers: Mapping[int, Mapping[str, Levels]],
) -> dict[str, int]:
    """All finalized levels after the updates. `brokers` are the registered brokers with the levels that they support. Raises
    InvalidUpdateVersion."""
    for feature, update in updates.items():
        reason = _refusal(feature, update, finalized.get(feature, 0), supported, controller_id, brokers)
        if reason is not None:
            raise refused(feature, update.level, reason)
    return {**finalized, **{feature: update.level for feature, update in updates.items()}}


def safe_downgrades(updates: Mapping[str, FeatureUpdate], finalized: Mapping[str, int]) -> dict[str, int]:
    """The new levels that are lower than the current ones and must not break what is in use."""
    return {
        feature: update.level
        for feature, update in updates.items()
        if update.upgrade_type == SAFE_DOWNGRADE and update.level < finalized.get(feature, 0)
    }


def refused(feature: str, level: int, reason: str) -> InvalidUpdateVersion:
    return InvalidUpdateVersion(
        "The update failed for all features since the following feature had an error: "
        f"Invalid update version {level} for feature {feature}. {reason}"
    )


def _refusal(
    feature: str,
    update: FeatureUpdate,
    current: int,
    supported: Mapping[str, Levels],
    controller_id: int,
    brokers: Mapping[int, Mapping[str, Levels]],
) -> str | None:
    level, upgrade_type = update
    if upgrade_type not in _UPGRADE_TYPES:
        return "The controller does not support the given upgrade type."
    if level < 0:
        return "A feature version cannot be less than 0."
    for name, levels in [(f"Local controller {controller_id}", supported), *((f"Broker {key}", brokers[key]) for key in sorted(brokers))]:
        if (reason := _not_supported(name, level, levels.get(feature, Levels(0, 0)))) is not None:
            return reason
    if level < current and upgrade_type == UPGRADE:
        return "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."
    if level > current and upgrade_type != UPGRADE:
        return "Can't downgrade to a newer version."
    return None if feature in supported else f"Feature {feature} not found."


def _not_supported(subject: str, level: int, levels: Levels) -> str | None:
    if levels.lowest <= level <= levels.highest:
        return None
    if levels.highest == 0:
        return f"{subject} does not support this feature."
    return f"{subject} only supports versions {levels.lowest}-{levels.highest}"
