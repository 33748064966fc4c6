"""The attributes of the client of a request that the patterns of subscriptions match."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.broker.requests.request import Request


def client_attributes(request: Request[Any]) -> dict[str, str | None]:
    """All but the client instance id, by the names in `broker.config.client_metrics.MATCHED`. The software is from ApiVersions."""
    connection = request.connection
    name, version = connection.client_software or (None, None)
    peer = connection.extra_info("peername")
    return {
        "client_id": request.client_id,
        "client_software_name": name,
        "client_software_version": version,
        "client_source_address": request.session.host,
        "client_source_port": str(peer[1]) if isinstance(peer, tuple) and len(peer) > 1 else None,
    }
