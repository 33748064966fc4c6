"""bootstrap.servers before the first connection: names without an address are left out, and canonical names found where they are wanted."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Sequence
from typing import Any

from barnabas.client.network.handshake import unresolved
from barnabas.config_def import InvalidConfig

_log = logging.getLogger(__name__)

Address = tuple[str, int]


async def resolve_bootstrap(addresses: Sequence[Address], dns_lookup: str) -> list[Address]:
    """The addresses to begin with; raises InvalidConfig, in Kafka's words and with the reasons, where none can be found."""
    canonical = dns_lookup == "resolve_canonical_bootstrap_servers_only"
    found = await asyncio.gather(*(_resolve(host, port, canonical) for host, port in addresses), return_exceptions=True)
    resolved: dict[Address, None] = {}
    failures: list[tuple[str, BaseException]] = []
    for (host, port), several in zip(addresses, found, strict=True):
        if isinstance(several, OSError | UnicodeError):
            failures.append((f"{host}:{port}: {unresolved(host, several)}", several))
        elif isinstance(several, BaseException):
            raise several
        else:
            resolved.update(dict.fromkeys(several))
    if not resolved:
        reasons = "; ".join(reason for reason, _ in failures)
        raise InvalidConfig(f"No resolvable bootstrap urls given in bootstrap.servers: {reasons}") from failures[0][1]
    for reason, _ in failures:
        _log.warning("%s (bootstrap.servers); the client begins with the other servers", reason)
    return list(resolved)


async def _resolve(host: str, port: int, canonical: bool) -> list[Address]:
    loop = asyncio.get_running_loop()
    found: list[Any] = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    if not canonical:
        return [(host, port)]
    names = [await loop.getnameinfo(row[4]) for row in found]
    return list(dict.fromkeys((name, port) for name, _ in names))
