"""Which topic names are valid, and which are internal to Kafka.

Every name from outside is checked here before it is used, because it becomes the path of a znode and the name of a directory.
"""

from __future__ import annotations

import re
from typing import Final

from barnabas.errors import InvalidTopic

NAME_LENGTH_MAX: Final = 249  # with a partition and a suffix it must still be a valid file name

CONSUMER_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
SHARE_GROUP_STATE: Final = "__share_group_state"
CLUSTER_METADATA: Final = "__cluster_metadata"
INTERNAL_TOPICS: Final = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE})

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]*")


def fault_in(name: str) -> str | None:
    """Kafka's text about the fault of a name, or None if the name is valid."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > NAME_LENGTH_MAX:
        return f"the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    if not _LEGAL.fullmatch(name):
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def is_valid(name: str) -> bool:
    return fault_in(name) is None


def validate(name: str) -> None:
    fault = fault_in(name)
    if fault is not None:
        raise InvalidTopic(f"Topic name is invalid: {fault}")


def is_internal(name: str) -> bool:
    """Whether the topic is internal: clients may not write to it as to other topics, and Metadata marks it."""
    return name in INTERNAL_TOPICS


def unify_collision_chars(name: str) -> str:
    """Metric names have `_` where topics have `.`. Two topics with the same metric name may not both exist."""
    return name.replace(".", "_")
