"""What /health/ready of a broker says."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Final
from urllib.parse import urlsplit

from barnabas.tools.connecting.metrics_addresses import address_of

TIMEOUT_S: Final = 2.0
BYTES_MAX: Final = 65_536
_NOT_READY: Final = 503


def readiness_url(listener: str, host: str) -> str:
    """The address of the probe at a metrics.listener; a listener on all addresses is on the host of its broker."""
    url = urlsplit(address_of(listener, host))
    return f"{url.scheme}://{url.netloc}/health/ready"


def unreadiness(url: str) -> str:
    """The problems of a broker that says that it is not ready. Empty if it is ready, or if it cannot be asked from here."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S):
            return ""
    except urllib.error.HTTPError as error:
        return _problems(error.read(BYTES_MAX)) if error.code == _NOT_READY else ""
    except (OSError, ValueError):
        return ""


def _problems(body: bytes) -> str:
    """Users and ACLs may keep the problems from this client: then only the status is there."""
    try:
        problems = json.loads(body).get("problems", [])
    except (ValueError, AttributeError):
        problems = []
    return "; ".join(map(str, problems)) or "its /health/ready tells the problems to users only"
