"""The features of a KRaft cluster and their levels in Apache Kafka 4.2; kafka-features prints them without a broker."""

from __future__ import annotations

from typing import Final

METADATA_VERSION: Final = "metadata.version"
# The metadata versions of each release: its first, and how many; those of 4.3 are not released yet.
_RELEASES: Final = (
    ("3.3", 3, 1),
    ("3.4", 0, 1),
    ("3.5", 0, 3),
    ("3.6", 0, 3),
    ("3.7", 0, 5),
    ("3.8", 0, 1),
    ("3.9", 0, 1),
    ("4.0", 0, 4),
    ("4.1", 0, 2),
    ("4.2", 0, 2),
    ("4.3", 0, 1),
)
_NAMES: Final = [f"{release}-IV{first + number}" for release, first, count in _RELEASES for number in range(count)]
METADATA_VERSIONS: Final = {name: level for level, name in enumerate(_NAMES, start=7)}
LATEST_PRODUCTION: Final = "4.2-IV1"
# For each feature the metadata version from which on each of its levels is the default, from level 0 on.
FEATURES: Final = {
    "kraft.version": ("3.3-IV3", "3.9-IV0"),
    "transaction.version": ("3.3-IV3", "4.0-IV2", "4.0-IV2"),
    "group.version": ("3.3-IV3", "4.0-IV0"),
    "eligible.leader.replicas.version": ("3.3-IV3", "4.1-IV0"),
    "share.version": ("3.3-IV3", "4.2-IV0"),
    "streams.version": ("3.3-IV3", "4.2-IV1"),
}
DEPENDENCIES: Final = {("eligible.leader.replicas.version", 1): {METADATA_VERSION: METADATA_VERSIONS["4.0-IV1"]}}


def metadata_level(text: str) -> int:
    """The level of `4.2-IV1`, or of the last released one of `4.2`; raises ValueError with Kafka's text."""
    key = ".".join(text.split(".")[:2])
    if key in METADATA_VERSIONS:
        return METADATA_VERSIONS[key]
    last = METADATA_VERSIONS[LATEST_PRODUCTION]
    levels = [level for name, level in METADATA_VERSIONS.items() if name.partition("-")[0] == key and level <= last]
    if not levels:
        raise ValueError(f"Unknown metadata.version '{text}'. Supported metadata.version are: {', '.join(METADATA_VERSIONS)}")
    return levels[-1]


def metadata_name(level: int) -> str | None:
    return next((name for name, number in METADATA_VERSIONS.items() if number == level), None)


def default_level(feature: str, metadata: int) -> int:
    """The level that a feature has by default in a cluster of this metadata version."""
    default = 0
    for level, since in enumerate(FEATURES[feature]):
        if METADATA_VERSIONS[since] > metadata:
            break
        default = level
    return default
