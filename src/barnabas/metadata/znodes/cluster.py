"""The znodes of the whole cluster: /controller, /controller_epoch, /brokers/ids/N, /cluster/id, /latest_producer_id_block, and finalized
features: /feature is Apache Kafka's, /barnabas/features is our own, in the same format. Brokers and the controller write them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from barnabas.endpoint import EndPoint, SecurityProtocol
from barnabas.metadata import paths
from barnabas.metadata.znodes import json_text, ordering

BROKER_VERSION: Final = 5
FEATURE_DISABLED: Final = 0
FEATURE_ENABLED: Final = 1
PRODUCER_ID_BLOCK_SIZE: Final = 1000
_ENDPOINT: Final = re.compile(r"(?P<listener>[^:/]+)://(?:\[(?P<ipv6>[0-9a-fA-F:%._]*)\]|(?P<host>[^\[\]:/]*)):(?P<port>-?[0-9]{1,10})")


@dataclass(frozen=True, slots=True)
class ControllerZNode:
    broker_id: int
    timestamp: int
    kraft_controller_epoch: int | None = -1  # None: written by Kafka before 3.4, which lacks it


def encode_controller(controller: ControllerZNode) -> bytes:
    fields: dict[str, object] = {"version": 1, "brokerid": controller.broker_id, "timestamp": str(controller.timestamp)}
    if controller.kraft_controller_epoch is not None:
        fields |= {"version": 2, "kraftControllerEpoch": controller.kraft_controller_epoch}
    return json_text.encode(fields)


def decode_controller(data: bytes | None) -> ControllerZNode:
    fields = json_text.decode(paths.CONTROLLER, data)
    timestamp = fields.long_text("timestamp") if "timestamp" in fields else -1  # not used, so not required
    kraft_epoch = fields.integer("kraftControllerEpoch") if "kraftControllerEpoch" in fields else None
    return ControllerZNode(fields.integer("brokerid"), timestamp, kraft_epoch)


def encode_controller_epoch(epoch: int) -> bytes:
    return str(epoch).encode()


def decode_controller_epoch(data: bytes | None) -> int:
    return json_text.decode_number(paths.CONTROLLER_EPOCH, data)


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    endpoints: tuple[EndPoint, ...]
    timestamp: int
    rack: str | None = None
    jmx_port: int = -1
    features: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # name -> min_version, max_version
    version: int = BROKER_VERSION
    is_cordoned: bool = False  # all its log directories are: it gets no new replicas. Kafka 3.9 ignores the field


def encode_broker(broker: BrokerRegistration) -> bytes:
    """`host` and `port` are those of the first PLAINTEXT endpoint, for old clients; null and -1 if there is none."""
    plain = next((endpoint for endpoint in broker.endpoints if endpoint.security_protocol is SecurityProtocol.PLAINTEXT), None)
    fields: dict[str, object] = {}
    if broker.version >= 5:
        fields["features"] = {name: dict(broker.features[name]) for name in ordering.scala_immutable(broker.features)}
    if broker.version >= 4:
        protocols = {endpoint.listener_name: endpoint.security_protocol.name for endpoint in broker.endpoints}
        fields["listener_security_protocol_map"] = {name: protocols[name] for name in ordering.scala_immutable(protocols)}
    if broker.version >= 2:
        fields["endpoints"] = [str(endpoint) for endpoint in broker.endpoints]
    if broker.version >= 3 and broker.rack is not None:
        fields["rack"] = broker.rack
    fields["jmx_port"] = broker.jmx_port
    fields["port"] = plain.port if plain is not None else -1
    fields["host"] = plain.host if plain is not None else None
    fields["version"] = broker.version
    fields["timestamp"] = str(broker.timestamp)
    if broker.is_cordoned:
        fields["cordoned"] = 1
    return json_text.encode(fields)


def decode_broker(broker_id: int, data: bytes | None) -> BrokerRegistration:
    fields = json_text.decode(paths.broker_id(broker_id), data)
    version = fields.integer("version")
    if version < 1:
        raise fields.fault(f"Unsupported version {version} of broker registration")
    timestamp = fields.long_text("timestamp") if "timestamp" in fields else -1
    features = fields.optional_nested("features")
    return BrokerRegistration(
        endpoints=_decode_endpoints(fields, version),
        timestamp=timestamp,
        rack=fields.optional_text("rack"),
        jmx_port=fields.integer("jmx_port"),
        features={name: {label: features.nested(name).integer(label) for label in features.nested(name)} for name in features},
        version=version,
        is_cordoned=fields.integer("cordoned", 0) == 1,
    )


def _decode_endpoints(fields: json_text.JsonObject, version: int) -> tuple[EndPoint, ...]:
    if version == 1:
        return (EndPoint("PLAINTEXT", fields.text("host"), fields.integer("port")),)
    protocols = fields.optional_nested("listener_security_protocol_map")
    endpoints = []
    for text in fields.texts("endpoints"):
        match = _ENDPOINT.fullmatch(text)
        if match is None:
            raise fields.fault(f"{text!r} is not an endpoint")
        listener = match["listener"].upper()
        protocol = protocols.text(listener) if listener in protocols else listener  # before version 4 a listener is named by its protocol
        host = match["ipv6"] if match["ipv6"] is not None else match["host"]
        if protocol not in SecurityProtocol.__members__:
            raise fields.fault(f"{protocol!r} is not a security protocol")
        endpoints.append(EndPoint(listener, host, int(match["port"]), SecurityProtocol[protocol]))
    return tuple(endpoints)


def encode_cluster_id(cluster_id: str) -> bytes:
    return json_text.encode({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes | None) -> str:
    return json_text.decode(paths.CLUSTER_ID, data).text("id")


@dataclass(frozen=True, slots=True)
class FeatureZNode:
    """Finalized features with their levels. Version 1 also stored a lowest level, always equal to the highest."""

    levels: Mapping[str, int]
    status: int = FEATURE_ENABLED
    version: int = 2


def encode_features(features: FeatureZNode) -> bytes:
    levels: dict[str, object] = {}
    for name in ordering.scala_immutable(features.levels):
        level = features.levels[name]
        levels[name] = {"max_version_level": level} | ({"min_version_level": level} if features.version == 1 else {})
    return json_text.encode({"features": levels, "version": features.version, "status": features.status})


def decode_features(data: bytes | None, path: str = paths.FEATURE) -> FeatureZNode:
    """The features in /feature, or in /barnabas/features, which has the same format and where level 0 means that a feature is off."""
    fields = json_text.decode(path, data)
    version, status = fields.integer("version"), fields.integer("status")
    if version not in (1, 2):
        raise fields.fault(f"Unsupported version {version} of feature information")
    if status not in (FEATURE_DISABLED, FEATURE_ENABLED):
        raise fields.fault(f"Malformed status {status} in feature information")
    features = fields.nested("features")
    least = 0 if path == paths.BARNABAS_FEATURES else 1
    levels = {}
    for name in features:
        level = features.nested(name).integer("max_version_level")
        lowest = features.nested(name).integer("min_version_level") if version == 1 else least
        if not least <= lowest <= level:
            raise fields.fault(f"Expected {least} <= min_version_level <= max_version_level for {name}, found {lowest} and {level}")
        levels[name] = level
    return FeatureZNode(levels, status, version)


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
    """Producer ids that a broker may hand out, first and last included."""

    broker_id: int
    first: int
    last: int


def encode_producer_id_block(block: ProducerIdBlock) -> bytes:
    return json_text.encode({"version": 1, "broker": block.broker_id, "block_start": str(block.first), "block_end": str(block.last)})


def decode_producer_id_block(data: bytes | None) -> ProducerIdBlock:
    fields = json_text.decode(paths.PRODUCER_ID_BLOCK, data)
    return ProducerIdBlock(fields.integer("broker"), fields.long_text("block_start"), fields.long_text("block_end"))
