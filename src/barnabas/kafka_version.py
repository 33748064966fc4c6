"""The versions of Kafka's protocol in their order, as the values of settings: 3.9, 3.9-IV0, 0.11.0.2."""

from __future__ import annotations

from typing import Final

# Each release with the number of its internal versions, IV0 and so on. The first four releases have none.
_RELEASES: Final = (
    *((release, 0) for release in ("0.8.0", "0.8.1", "0.8.2", "0.9.0")),
    *(("0.10.0", 2), ("0.10.1", 3), ("0.10.2", 1), ("0.11.0", 3), ("1.0", 1), ("1.1", 1), ("2.0", 2), ("2.1", 3), ("2.2", 2), ("2.3", 2)),
    *(("2.4", 2), ("2.5", 1), ("2.6", 1), ("2.7", 3), ("2.8", 2), ("3.0", 2), ("3.1", 1), ("3.2", 1), ("3.3", 4), ("3.4", 1), ("3.5", 3)),
    *(("3.6", 3), ("3.7", 5), ("3.8", 1), ("3.9", 1)),
)
_VERSIONS: Final = tuple(f"{release}-IV{number}" if count else release for release, count in _RELEASES for number in range(count or 1))
_POSITIONS: Final = {version: position for position, version in enumerate(_VERSIONS)} | {
    release: max(position for position, version in enumerate(_VERSIONS) if version.partition("-")[0] == release) for release, _ in _RELEASES
}


def position(version: str) -> int:
    """The place of a version in the order of all. 3.9 and 3.9.1 are the last internal version of 3.9. Raises ValueError."""
    segments = version.split(".")
    name = ".".join(segments[: 3 if version.startswith("0.") else 2])
    if name not in _POSITIONS:
        raise ValueError(f"Version {version} is not a valid version")
    return _POSITIONS[name]
