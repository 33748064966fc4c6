# Compiled by mypyc: src/compiled.toml lists this module.
"""The caller of a group request: client id, client address in Java's notation, both of which DescribeGroups shows to other clients, and the
topics that it may describe."""

from __future__ import annotations

from ipaddress import AddressValueError, IPv6Address
from typing import TYPE_CHECKING, Any

from barnabas.coordinator.group.classic.classic_groups import Caller

if TYPE_CHECKING:
    from barnabas.broker.requests.request import Request
    from barnabas.broker.security.access import Access


def caller_of(request: Request[Any], access: Access) -> Caller:
    host = java_address(request.connection.remote_ip)
    return Caller(request.client_id or "", host, request.version, access.describable(request))


def java_address(address: str) -> str:
    """As Java's InetAddress prints an unresolved address: /1.2.3.4, or all eight groups of an IPv6 address, followed by its scope."""
    if ":" not in address:
        return f"/{address}"
    host, percent, scope = address.partition("%")
    try:
        parsed = IPv6Address(host)
    except AddressValueError:
        return f"/{address}"
    if parsed.ipv4_mapped is not None:
        return f"/{parsed.ipv4_mapped}"
    groups = (f"{int.from_bytes(parsed.packed[at : at + 2], 'big'):x}" for at in range(0, 16, 2))
    return f"/{':'.join(groups)}{percent}{scope}"
