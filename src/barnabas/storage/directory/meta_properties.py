"""meta.properties: to which node of which cluster a log directory belongs.

Version 0 is that of a ZooKeeper cluster (broker.id), version 1 that of Kafka 4 (node.id, directory.id). A broker checks it before it opens
any log, because it must never write to the disk of another node or cluster.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from barnabas.errors import CorruptCheckpoint, InvalidMetaProperties
from barnabas.properties import format_properties, parse_properties
from barnabas.storage.directory.checkpoints import read_text
from barnabas.storage.disk.files import AnyFiles
from barnabas.uuid import Uuid

META_PROPERTIES: Final = "meta.properties"
_VERSIONS: Final = (0, 1)
_BYTES_MAX: Final = 64 * 1024
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,10}")


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """The properties of one log directory. In version 0 cluster and broker may be missing."""

    version: int
    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: Uuid | None = None

    def __post_init__(self) -> None:
        _check_version(self.version)
        if self.version > 0 and self.cluster_id is None:
            raise InvalidMetaProperties("cluster.id was not found.")
        if self.version > 0 and self.node_id is None:
            raise InvalidMetaProperties("node.id was not found.")

    @classmethod
    def from_properties(cls, properties: dict[str, str]) -> MetaProperties:
        version = _number(properties, "version", "0")
        _check_version(version)  # first: the other names depend on it
        return cls(
            version,
            properties.get("cluster.id"),
            _number(properties, "node.id") if version > 0 else _optional_number(properties, "broker.id"),
            _uuid(properties, "directory.id"),
        )

    def to_properties(self) -> dict[str, str]:
        """The properties in the order of Apache Kafka's files."""
        properties = {
            "broker.id" if self.version == 0 else "node.id": self.node_id,
            "directory.id": self.directory_id,
            "version": self.version,
            "cluster.id": self.cluster_id,
        }
        return {name: str(value) for name, value in properties.items() if value is not None}


class MetaPropertiesFile:
    def __init__(self, files: AnyFiles, log_dir: str) -> None:
        self.files = files
        self.path = f"{log_dir}/{META_PROPERTIES}"

    def read(self) -> MetaProperties | None:
        """None for a log directory that was not used yet; raises InvalidMetaProperties."""
        try:
            return MetaProperties.from_properties(parse_properties(read_text(self.files, self.path, _BYTES_MAX)))
        except FileNotFoundError:
            return None
        except (InvalidMetaProperties, CorruptCheckpoint, ValueError) as e:
            raise InvalidMetaProperties(f"Error while reading meta.properties file {self.path}: {e}") from None

    def write(self, properties: MetaProperties, now_ms: int) -> None:
        self.files.write_atomically(self.path, format_properties(properties.to_properties(), now_ms).encode())


def _check_version(version: int) -> None:
    if version not in _VERSIONS:
        raise InvalidMetaProperties(f"Unknown meta.properties version number {version}")


def _number(properties: dict[str, str], name: str, default: str | None = None) -> int:
    text = properties.get(name, default)
    if text is None:
        raise InvalidMetaProperties(f"Failed to find {name}")
    if not _NUMBER.fullmatch(text):
        raise InvalidMetaProperties(f"Unable to read {name} as a base-10 number.")
    return int(text)


def _optional_number(properties: dict[str, str], name: str) -> int | None:
    return _number(properties, name) if name in properties else None


def _uuid(properties: dict[str, str], name: str) -> Uuid | None:
    if name not in properties:
        return None
    try:
        return Uuid.from_string(properties[name])
    except ValueError as e:
        raise InvalidMetaProperties(f"Unable to read {name} as a Uuid: {e}") from None
