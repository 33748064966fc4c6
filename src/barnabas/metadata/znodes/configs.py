"""Dynamic configs: /config/(topics|brokers|clients|users|ips)/… and the notifications in /config/changes that make brokers read them.

User names and client ids may contain any character, so they are URL-encoded in paths (`sanitize`); `<default>` means all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote_plus, unquote_plus

from barnabas.metadata import paths
from barnabas.metadata.znodes import json_text, ordering

DEFAULT_ENTITY: Final = "<default>"


def encode_config(config: Mapping[str, str]) -> bytes:
    return json_text.encode({"version": 1, "config": {key: config[key] for key in ordering.java_properties(config)}})


def decode_config(entity_path: str, data: bytes | None) -> dict[str, str]:
    """Empty for a node without data: /config/users/alice exists as soon as one of her clients has a config."""
    if not data:
        return {}
    config = json_text.decode(paths.config_entity(entity_path), data).optional_nested("config")
    return {key: config.text(key) for key in config}


def encode_config_change(entity_path: str) -> bytes:
    """`entity_path` is the part after /config/ in the path of the changed node."""
    return json_text.encode({"version": 2, "entity_path": entity_path})


def decode_config_change(path: str, data: bytes | None) -> str:
    """The entity path. Version 1, of Kafka 0.9, has type and name in separate fields."""
    fields = json_text.decode(path, data)
    version = fields.integer("version")
    if version == 1:
        entity_type, name = fields.text("entity_type"), fields.text("entity_name")
        if entity_type not in ("topics", "clients"):
            raise fields.fault(f"Version 1 config change notification must have entity_type 'clients' or 'topics', not {entity_type!r}")
        return f"{entity_type}/{name}"
    if version != 2:
        raise fields.fault(f"Config change notification has unsupported version {version}; supported are 1 and 2")
    entity_path = fields.text("entity_path")
    if entity_path.split("/", 1)[0] not in (*paths.CONFIG_TYPES, *paths.LATER_CONFIG_TYPES):
        raise fields.fault(f"entity_path {entity_path!r} begins with no known entity type")
    return entity_path


def sanitize(name: str) -> str:
    """Encodes like Java's URLEncoder, with %20 for a space and %2A for a star. `.` and `..`, which no node can be named, are encoded
    too."""
    if name in (".", ".."):
        return name.replace(".", "%2E")
    return quote_plus(name, safe="").replace("+", "%20").replace("~", "%7E")


def desanitize(name: str) -> str:
    return unquote_plus(name)
