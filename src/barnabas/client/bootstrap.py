"""bootstrap.servers before the first connection: names without an address are left out, and canonical names found where they are wanted."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Sequence
from typing import Any

from barnabas.config_def import InvalidConfig

_log = logging.getLogger(__name__)

Address = tuple[str, int]


async def resolve_bootstrap(addresses: Sequence[Address], dns_lookup: str) -> list[Address]:
    """The addresses to begin with; raises InvalidConfig, in Kafka's words, where none can be found."""
    canonical = dns_lookup == "resolve_canonical_bootstrap_servers_only"
    found = await asyncio.gather(*(_resolve(host, port, canonical) for host, port in addresses))
    resolved = list(dict.fromkeys(address for several in found for address in several))
    if not resolved:
        raise InvalidConfig("No resolvable bootstrap urls given in bootstrap.servers")
    return resolved


async def _resolve(host: str, port: int, canonical: bool) -> list[Address]:
    loop = asyncio.get_running_loop()
    try:
        found: list[Any] = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        if not canonical:
            return [(host, port)]
        names = [await loop.getnameinfo(row[4]) for row in found]
        return list(dict.fromkeys((name, port) for name, _ in names))
    except (OSError, UnicodeError):
        _log.warning("Couldn't resolve server %s:%d from bootstrap.servers as DNS resolution failed for %s", host, port, host)
        return []
