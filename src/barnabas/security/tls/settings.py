"""The ssl.* settings of one listener, client or ZooKeeper connection, and how errors name them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.config_def import InvalidConfig

# Kafka's SslConfigs.RECONFIGURABLE_CONFIGS. A running broker takes new ones only with the prefix of a listener.
STORE_SETTINGS: Final = (
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
)
FileStamp = tuple[str, int, int, int]  # path, inode, size, time of the last change in ns

TLS_SETTINGS: Final = ("ssl.cipher.suites", "ssl.enabled.protocols", "ssl.protocol", *STORE_SETTINGS)


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """`values` has the settings of TLS_SETTINGS. repr() hides them, because passwords and keys are among them. `owner` begins each error,
    and `prefix` each name of a setting: `zookeeper.`"""

    values: Mapping[str, Any] = field(repr=False)
    owner: str = ""
    prefix: str = ""

    def __getitem__(self, name: str) -> Any:
        """None if it is not set, or set to nothing."""
        return self.values.get(name) or None

    def invalid(self, message: str) -> InvalidConfig:
        """An error about these settings. `message` names them without the prefix."""
        named = message.replace("ssl.", f"{self.prefix}ssl.") if self.prefix else message
        return InvalidConfig(f"{self.owner}: {named}" if self.owner else named)

    @property
    def files(self) -> tuple[str, ...]:
        """The files that the settings name."""
        return tuple(path for store in ("keystore", "truststore") if (path := self[f"ssl.{store}.location"]) is not None)

    def stamps(self) -> tuple[FileStamp, ...]:
        """Changes with each file that the settings name. A missing file has no stamp."""
        return tuple(stamp for path in self.files if (stamp := _stamp(path)) is not None)


def _stamp(path: str) -> FileStamp | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return path, status.st_ino, status.st_size, status.st_mtime_ns
