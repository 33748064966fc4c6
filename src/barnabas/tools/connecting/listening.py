"""Finds brokers at whose address nothing listens."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

_PROBE_TIMEOUT_S: Final = 2.0
_PROBES_MAX: Final = 16


def refusing(nodes: Sequence[Any]) -> frozenset[int]:
    """The ids of the brokers at whose address nothing listens. A cluster lists a killed broker until its session expires, and a client
    retries it until its timeout: one connection attempt finds out at once."""
    with ThreadPoolExecutor(_PROBES_MAX) as pool:
        return frozenset(node.id for node, refuses in zip(nodes, pool.map(_refuses, nodes), strict=True) if refuses)


def _refuses(node: Any) -> bool:
    try:
        socket.create_connection((node.host, node.port), _PROBE_TIMEOUT_S).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False  # left to the client, whose timeouts are longer
    return False
