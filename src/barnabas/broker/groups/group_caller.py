# Compiled by mypyc: src/compiled.toml lists this module.
"""The caller of a group request: client id, client address in Java's notation, both of which DescribeGroups shows to other clients, and the
topics that it may describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.broker.security.client_host import client_host
from barnabas.coordinator.group.classic.classic_groups import Caller

if TYPE_CHECKING:
    from barnabas.broker.requests.request import Request
    from barnabas.broker.security.access import Access


def caller_of(request: Request[Any], access: Access) -> Caller:
    host = java_address(request.connection.remote_ip)
    return Caller(request.client_id or "", host, request.version, access.describable(request))


def java_address(address: str) -> str:
    """As Java's InetAddress prints an unresolved address: /1.2.3.4."""
    return f"/{client_host(address)}"
