"""The paths of Kafka's znodes, as Kafka 3.9 in ZooKeeper mode uses them, and those that only Barnabas uses.

Names that may contain any character (users, client ids) are in a path in their sanitized form; see `znodes.configs`.
"""

from __future__ import annotations

import re
from typing import Final

CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"

BROKERS: Final = "/brokers"
BROKER_IDS: Final = "/brokers/ids"
BROKER_SEQUENCE_ID: Final = "/brokers/seqid"
TOPICS: Final = "/brokers/topics"

CONFIG: Final = "/config"
CONFIG_CHANGES: Final = "/config/changes"
CONFIG_CHANGE_PREFIX: Final = "config_change_"
CONFIG_TYPES: Final = ("topics", "clients", "users", "brokers", "ips")
# Kafka has these names only in KRaft mode. Barnabas keeps them in the metadata store, too, and creates their nodes on demand.
LATER_CONFIG_TYPES: Final = ("client-metrics", "groups")

ADMIN: Final = "/admin"
DELETE_TOPICS: Final = "/admin/delete_topics"
REASSIGN_PARTITIONS: Final = "/admin/reassign_partitions"
PREFERRED_REPLICA_ELECTION: Final = "/admin/preferred_replica_election"

ISR_CHANGE_NOTIFICATION: Final = "/isr_change_notification"
ISR_CHANGE_PREFIX: Final = "isr_change_"
LOG_DIR_EVENT_NOTIFICATION: Final = "/log_dir_event_notification"
LOG_DIR_EVENT_PREFIX: Final = "log_dir_event_"

PRODUCER_ID_BLOCK: Final = "/latest_producer_id_block"
CLUSTER: Final = "/cluster"
CLUSTER_ID: Final = "/cluster/id"
FEATURE: Final = "/feature"
MIGRATION: Final = "/migration"
CONSUMERS: Final = "/consumers"

ACL: Final = "/kafka-acl"
ACL_CHANGES: Final = "/kafka-acl-changes"
EXTENDED_ACL: Final = "/kafka-acl-extended"
EXTENDED_ACL_CHANGES: Final = "/kafka-acl-extended-changes"
ACL_CHANGE_PREFIX: Final = "acl_changes_"

DELEGATION_TOKEN: Final = "/delegation_token"
DELEGATION_TOKENS: Final = "/delegation_token/tokens"
DELEGATION_TOKEN_CHANGES: Final = "/delegation_token/token_changes"
DELEGATION_TOKEN_CHANGE_PREFIX: Final = "token_change_"

# Not Kafka's. An Apache Kafka broker in the same cluster stops when /feature holds a feature that it does not support.
BARNABAS: Final = "/barnabas"
BARNABAS_FEATURES: Final = "/barnabas/features"

# The znodes that a broker creates at its start, in Kafka's order; their parents are created with them.
PERSISTENT_PATHS: Final = (
    CONSUMERS,
    BROKER_IDS,
    TOPICS,
    CONFIG_CHANGES,
    DELETE_TOPICS,
    BROKER_SEQUENCE_ID,
    ISR_CHANGE_NOTIFICATION,
    PRODUCER_ID_BLOCK,
    LOG_DIR_EVENT_NOTIFICATION,
    *(f"{CONFIG}/{entity_type}" for entity_type in CONFIG_TYPES),
)

# The paths that Kafka protects with zookeeper.set.acl=true, and those among them that others may not even read.
SECURE_ROOT_PATHS: Final = (
    ADMIN,
    BROKERS,
    CLUSTER,
    CONFIG,
    CONTROLLER,
    CONTROLLER_EPOCH,
    ISR_CHANGE_NOTIFICATION,
    PRODUCER_ID_BLOCK,
    LOG_DIR_EVENT_NOTIFICATION,
    DELEGATION_TOKEN,
    EXTENDED_ACL,
    MIGRATION,
    FEATURE,
    ACL,
    ACL_CHANGES,
    f"{EXTENDED_ACL}/prefixed",
    EXTENDED_ACL_CHANGES,
    BARNABAS,
)
SENSITIVE_ROOT_PATHS: Final = (f"{CONFIG}/users", f"{CONFIG}/brokers", DELEGATION_TOKENS)


def is_sensitive(path: str) -> bool:
    """Whether the node may hold secrets and must not be world-readable."""
    return path.startswith(SENSITIVE_ROOT_PATHS)


def broker_id(broker: int) -> str:
    return f"{BROKER_IDS}/{broker}"


def topic(name: str) -> str:
    return f"{TOPICS}/{name}"


def topic_partitions(name: str) -> str:
    return f"{TOPICS}/{name}/partitions"


def topic_partition(name: str, partition: int) -> str:
    return f"{TOPICS}/{name}/partitions/{partition}"


def topic_partition_state(name: str, partition: int) -> str:
    return f"{TOPICS}/{name}/partitions/{partition}/state"


def config_type(entity_type: str) -> str:
    return f"{CONFIG}/{entity_type}"


def config_entity(entity_path: str) -> str:
    """`entity_path` as in a change notification: `topics/T`, `users/alice/clients/c1`, `brokers/<default>`."""
    return f"{CONFIG}/{entity_path}"


def delete_topic(name: str) -> str:
    return f"{DELETE_TOPICS}/{name}"


def acl_type(resource_type: str, pattern_type: str = "LITERAL") -> str:
    root = ACL if pattern_type == "LITERAL" else f"{EXTENDED_ACL}/{pattern_type.lower()}"
    return f"{root}/{resource_type}"


def acl(resource_type: str, name: str, pattern_type: str = "LITERAL") -> str:
    return f"{acl_type(resource_type, pattern_type)}/{name}"


def delegation_token(token_id: str) -> str:
    return f"{DELEGATION_TOKENS}/{token_id}"


def consumer_offset(group: str, name: str, partition: int) -> str:
    return f"{CONSUMERS}/{group}/offsets/{name}/{partition}"


def with_ancestors(path: str) -> list[str]:
    """A path and its ancestors, without the root, from the top down."""
    parts = path.split("/")[1:]
    return ["/" + "/".join(parts[:count]) for count in range(1, len(parts) + 1)]


def parent(path: str) -> str:
    return path[: path.rfind("/")] or "/"


def sequence_number(path: str) -> int:
    """The ten digits at the end of the name of a sequential node; notifications are handled in this order."""
    digits = path[-SEQUENCE_DIGITS:]
    if len(digits) < SEQUENCE_DIGITS or not digits.isdecimal():
        raise ValueError(f"{path} is not the path of a sequential node: it does not end in {SEQUENCE_DIGITS} digits")
    return int(digits)


SEQUENCE_DIGITS: Final = 10

# Invalid in ZooKeeper's paths: control characters, surrogates (so all beyond U+FFFF), private use, specials; empty names, `.` and `..`.
_FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]|//|/\.{1,2}(?:/|\Z)")


def fault_in(path: str) -> str | None:
    """The reason why a path is invalid by ZooKeeper's rules, or None."""
    if not path.startswith("/"):
        return "a path begins with /"
    if path.endswith("/") and path != "/":
        return "a path does not end with /"
    match = _FORBIDDEN.search(path)
    return None if match is None else f"{match.group()!r} at {match.start()} is not allowed in a path"
