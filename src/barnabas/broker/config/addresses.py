"""Resolves the hosts that connection quotas name to addresses."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from ipaddress import ip_address

from barnabas.network.connection_quotas import normalised_ip


async def addresses_of(host: str) -> Sequence[str]:
    """The addresses of a host, as connections have them; none for a host that is not known. An address needs no name server."""
    try:
        ip_address(host)
    except ValueError:
        pass
    else:
        return [normalised_ip(host)]
    try:
        rows = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):  # UnicodeError for a label that no host can have
        return []
    return list(dict.fromkeys(normalised_ip(str(row[4][0])) for row in rows))
