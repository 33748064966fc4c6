"""ZooKeeper's ACLs, as Kafka sets them.

Without `zookeeper.set.acl` everyone has all permissions. With it, only the creator of a node may change it; everyone may read it, unless it
holds secrets. The identity of the creator is the one that the session has proved: `sasl:user` or `digest:user:hash`, as the server adds it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from barnabas.metadata import paths

READ: Final = 1
ALL: Final = 31


class ZnodeAcl(NamedTuple):
    permissions: int
    scheme: str
    id: str


AccessOf = Callable[[str], tuple[ZnodeAcl, ...]]

ANYONE: Final = (ZnodeAcl(ALL, "world", "anyone"),)
_CREATOR: Final = ZnodeAcl(ALL, "auth", "")
_READABLE: Final = ZnodeAcl(READ, "world", "anyone")


def open_to_all(path: str) -> tuple[ZnodeAcl, ...]:
    return ANYONE


def of_creator(path: str) -> tuple[ZnodeAcl, ...]:
    """/consumers stays open, as in Kafka: consumers before Kafka 0.9 write below it themselves."""
    if path == paths.CONSUMERS:
        return ANYONE
    return (_CREATOR,) if paths.is_sensitive(path) else (_CREATOR, _READABLE)
