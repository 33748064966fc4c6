"""What the console is started with: the clusters, where it listens, whether it may change anything, which fields it hides.

One cluster comes from the options of `barnabas console`, several from console.toml. Both become a ConsoleConfig, and an error names the
file and the entry.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from barnabas.config_def import InvalidConfig
from barnabas.config_providers import resolve_providers
from barnabas.console.messages.masks import InvalidMask, Mask, parse_masks
from barnabas.errors import IllegalArgument

DEFAULT_PORT: Final = 8080
CLUSTERS_MAX: Final = 50
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,60}")
_PASSWORD_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_CREDENTIALS: Final = ("sasl.username", "sasl.jaas.config", "sasl.client.callback.handler.class")
_PROVIDERS: Final = "config.providers"
_CLUSTER_KEYS: Final = frozenset({"client", "client-file", "metrics", "registry"})


class ConfigFault(IllegalArgument):
    """An option or an entry of console.toml that cannot be used; the message says which, and what to write."""


@dataclass(frozen=True)
class ClusterConfig:
    """One cluster: `client` has the settings of its clients, `metrics` the addresses of its metrics, `registry` the settings
    `schema.registry.…` of its schema registry.

    `config.providers` are applied here, once, and are then left out of `client`: a user or password that is typed later is added to these
    settings, and must not be able to read a file with `${file:…}`. Raises ConfigFault.
    """

    name: str
    client: Mapping[str, str] = field(repr=False)
    metrics: tuple[str, ...] = ()
    registry: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        try:
            resolved = resolve_providers(self.client)
        except InvalidConfig as fault:
            raise ConfigFault(f"The settings of the cluster {self.name} cannot be used: {fault}") from None
        client = {name: text for name, text in resolved.items() if name != _PROVIDERS and not name.startswith(f"{_PROVIDERS}.")}
        object.__setattr__(self, "client", client)  # the dataclass is frozen

    @property
    def logs_in(self) -> bool:
        """Whether people log in with users of the cluster: the cluster needs a password, and the settings have none."""
        protocol = self.client.get("security.protocol", "PLAINTEXT").upper()
        mechanism = self.client.get("sasl.mechanism", "").upper()
        has_own = any(self.client.get(name) for name in _CREDENTIALS)
        return protocol.startswith("SASL_") and mechanism in _PASSWORD_MECHANISMS and not has_own

    @property
    def bootstrap(self) -> str:
        return self.client.get("bootstrap.servers", "")


@dataclass(frozen=True)
class ConsoleConfig:
    """Everything that the console is started with."""

    clusters: tuple[ClusterConfig, ...]
    host: str = "localhost"
    port: int = DEFAULT_PORT
    may_write: bool = False
    masks: tuple[Mask, ...] = ()
    host_names: tuple[str, ...] = ()  # further names that the Host header may have, of a proxy for instance
    scheme: Literal["http", "https"] = "http"  # as people reach it; a proxy may add the TLS
    audit_file: str | None = None

    def cluster(self, name: str) -> ClusterConfig | None:
        return next((cluster for cluster in self.clusters if cluster.name == name), None)


def read_console_file(path: str) -> tuple[tuple[ClusterConfig, ...], tuple[Mask, ...], tuple[str, ...]]:
    """The clusters, masks and host names of console.toml. Raises ConfigFault."""
    try:
        content = tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise ConfigFault(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigFault(f"{path} is not TOML: {error}") from None
    unknown = content.keys() - {"clusters", "masks", "host-names"}
    if unknown:
        raise ConfigFault(f"{path}: {sorted(unknown)[0]} is not known; there are clusters, masks and host-names")
    clusters = content.get("clusters")
    if not isinstance(clusters, dict) or not 1 <= len(clusters) <= CLUSTERS_MAX:
        raise ConfigFault(f'{path} needs 1 to {CLUSTERS_MAX} tables [clusters.NAME], each with client."bootstrap.servers"')
    made = tuple(_cluster(path, name, entry) for name, entry in clusters.items())
    return made, _masks(path, content.get("masks", [])), _texts(path, "host-names", content.get("host-names", []))


def _cluster(path: str, name: str, entry: object) -> ClusterConfig:
    where = f"{path}: clusters.{name}"
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise ConfigFault(f"{where}: a name has 1 to 60 letters, digits, dots, underscores and hyphens, because it is part of addresses")
    if not isinstance(entry, dict) or entry.keys() - _CLUSTER_KEYS:
        raise ConfigFault(f"{where} is a table with {', '.join(sorted(_CLUSTER_KEYS))}")
    client = dict(_settings(where, "client-file", entry.get("client-file"))) | _flat(where, "client", entry.get("client", {}))
    if not client.get("bootstrap.servers"):
        raise ConfigFault(f'{where}: add client."bootstrap.servers" = "host:port"')
    return ClusterConfig(
        name, client, _texts(where, "metrics", entry.get("metrics", [])), _flat(where, "registry", entry.get("registry", {}))
    )


def _settings(where: str, name: str, file: object) -> Mapping[str, str]:
    from barnabas.properties import parse_properties

    if file is None:
        return {}
    if not isinstance(file, str):
        raise ConfigFault(f"{where}.{name} is the name of a properties file")
    try:
        return parse_properties(Path(file).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigFault(f"{where}.{name}: {file} cannot be read: {error}") from None


def _flat(where: str, name: str, table: object, prefix: str = "") -> dict[str, str]:
    """The settings of a table. TOML makes tables of names with dots that are not quoted: they become names again."""
    if not isinstance(table, dict):
        raise ConfigFault(f"{where}.{name} is a table of settings")
    flat: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat |= _flat(where, name, value, f"{prefix}{key}.")
        elif isinstance(value, bool):
            flat[prefix + key] = str(value).lower()
        elif isinstance(value, (str, int, float)):
            flat[prefix + key] = str(value)
        else:
            raise ConfigFault(f"{where}.{name}.{prefix}{key} is a text, a number or true or false")
    return flat


def _masks(path: str, tables: object) -> tuple[Mask, ...]:
    try:
        return parse_masks(tables)
    except InvalidMask as fault:
        raise ConfigFault(f"{path}: {fault}") from None


def _texts(where: str, name: str, values: object) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ConfigFault(f"{where}: {name} is a list of texts")
    return tuple(values)
