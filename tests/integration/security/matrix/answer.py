"""A response as plain data in which nothing is left that may differ between two brokers.

Fields at their default are left out, error codes and operations have their names, and topic ids are the names of their topics. Ids, times,
offsets, sizes, addresses and values of settings are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.security.operations import authorized_operations
from barnabas.uuid import Uuid

_ERRORS = {int(code): code.name for code in ErrorCode}
CLOSED = "the connection is closed"

_LEFT_OUT = frozenset(
    {
        "throttle_time_ms", "cluster_id", "controller_id", "host", "port", "rack", "brokers", "node_endpoints", "current_leader",
        "session_id", "preferred_read_replica", "is_cordoned", "producer_id_start", "producer_id_len",
        "leader_epoch", "leader_id", "leader_recovery_state", "replica_nodes", "isr_nodes", "eligible_leader_replicas", "last_known_elr",
        "log_append_time_ms", "log_start_offset", "base_offset", "high_watermark", "last_stable_offset", "offset", "offsets",
        "old_style_offsets", "timestamp", "records", "aborted_transactions", "end_offset", "low_watermark", "committed_leader_epoch",
        "producer_id", "producer_epoch", "transaction_start_time_ms", "transaction_timeout_ms", "active_producers",
        "member_id", "leader", "members", "member_epoch", "group_epoch", "assignment_epoch", "assignor_name", "heartbeat_interval_ms",
        "api_keys", "supported_features", "finalized_features", "finalized_features_epoch", "zk_migration_ready",
        "log_dir", "total_bytes", "usable_bytes", "partition_size", "offset_lag",
        "issue_timestamp", "expiry_timestamp", "max_timestamp", "issue_timestamp_ms", "expiry_timestamp_ms", "max_timestamp_ms", "token_id",
        "value", "config_source", "config_type", "documentation", "synonyms", "is_default", "hmac", "session_lifetime_ms", "auth_bytes",
        "client_instance_id", "subscription_id",
    }
)  # fmt: skip
_OPERATIONS = frozenset({"authorized_operations", "topic_authorized_operations", "cluster_authorized_operations"})
# Resources that other cells created, or that only one of the brokers has, in responses that list everything.
_LISTED = ("name", "group_id", "transactional_id", "resource_name", "topic_name", "topic", "principal_name")


class Answers:
    """`topics` are the names of topics by their ids. `names` are the names of the cell's resources, by what they are called in the answer.
    `listed` are the resources that a list of everything is reduced to."""

    def __init__(self, topics: Mapping[Uuid, str], names: Mapping[str, str], listed: frozenset[str]) -> None:
        self._topics = topics
        self._names = names
        self._listed = listed

    def plain(self, response: Message | None) -> Any:
        """None is the response of a broker that has closed the connection."""
        return CLOSED if response is None else self._message(response)

    def _message(self, message: Message) -> dict[str, Any]:
        default = type(message)()
        values = {name: getattr(message, name) for name in message.field_names() if name not in _LEFT_OUT}
        shown = {name: self._field(name, value) for name, value in values.items() if value != getattr(default, name)}
        return {name: value for name, value in shown.items() if value != [] or name in _OPERATIONS}

    def _field(self, name: str, value: Any) -> Any:
        if name.endswith("error_code"):
            return _ERRORS[value]
        if name in _OPERATIONS:
            return sorted(operation.name for operation in authorized_operations(value) or ())
        if name.endswith("error_message"):
            return self._named(_without_request(value))
        return self._value(value)

    def _value(self, value: Any) -> Any:
        if isinstance(value, list):
            return sorted((self._value(element) for element in value if self._is_shown(element)), key=json.dumps)
        if isinstance(value, Message):
            return self._message(value)
        if isinstance(value, Uuid):
            return self._named(f"id of {self._topics.get(value, 'a missing topic')}")
        if isinstance(value, bytes):
            return f"{len(value)} bytes"
        return self._named(value)

    def _named(self, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        for name, called in self._names.items():
            value = value.replace(name, called)
        return value

    def _is_shown(self, element: Any) -> bool:
        if not isinstance(element, Message) or not self._listed:
            return True
        names = [getattr(element, name) for name in _LISTED if name in element.field_names()]
        return not names or names[0] in self._listed


def _without_request(text: str | None) -> str | None:
    """Kafka prints a request with its connection, its session and its contents, and 4.2.0 also the operation."""
    return (
        None
        if text is None
        else re.sub(r"^Request .* (is not authorized|needs \w+ permission)", "Request … is not authorized", text, flags=re.DOTALL)
    )
