"""Resolution of bootstrap.servers before the first connection: drops names without an address, and finds canonical names if configured."""

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
    """The bootstrap addresses; raises InvalidConfig, in Kafka's words and with the reasons, if none can be resolved."""
    canonical = dns_lookup == "resolve_canonical_bootstrap_servers_only"
    results = await asyncio.gather(*(_resolve(host, port, canonical) for host, port in addresses), return_exceptions=True)
    resolved: dict[Address, None] = {}
    failures: list[tuple[str, BaseException]] = []
    for (host, port), resolution in zip(addresses, results, strict=True):
        if isinstance(resolution, OSError | UnicodeError):
            failures.append((f"{host}:{port}: {unresolved(host, resolution)}", resolution))
        elif isinstance(resolution, BaseException):
            raise resolution
        else:
            resolved.update(dict.fromkeys(resolution))
    if not resolved:
        reasons = "; ".join(reason for reason, _ in failures)
        raise InvalidConfig(f"No resolvable bootstrap urls given in bootstrap.servers: {reasons}") from failures[0][1]
    for reason, _ in failures:
        _log.warning("%s (bootstrap.servers); the client begins with the other servers", reason)
    return list(resolved)


async def _resolve(host: str, port: int, canonical: bool) -> list[Address]:
    loop = asyncio.get_running_loop()
    rows: list[Any] = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    if not canonical:
        return [(host, port)]
    names = [await loop.getnameinfo(row[4]) for row in rows]
    return list(dict.fromkeys((name, port) for name, _ in names))
