"""What a topic may be called, and which names are Kafka's own.

Every part that takes a name from outside asks here before it does anything with it: a name becomes a path in the tree and a directory.
"""

from __future__ import annotations

import re
from typing import Final

from barnabas.errors import InvalidTopic

NAME_LENGTH_MAX: Final = 249  # with a partition and a suffix behind it, it must still be a file name

CONSUMER_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
SHARE_GROUP_STATE: Final = "__share_group_state"
CLUSTER_METADATA: Final = "__cluster_metadata"
INTERNAL_TOPICS: Final = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE})

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]*")


def fault_in(name: str) -> str | None:
    """What is wrong with a name, in Kafka's words, or None."""
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
    """Whether clients may not write to it as to any other topic, and Metadata marks it."""
    return name in INTERNAL_TOPICS


def unify_collision_chars(name: str) -> str:
    """Metric names have `_` where topics have `.`; two topics that are one there may not both exist."""
    return name.replace(".", "_")
