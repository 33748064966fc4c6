"""The addresses of metrics of all brokers of a cluster, from their setting metrics.listener."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from barnabas.endpoint import host_and_port
from barnabas.tools.command_line.failures import Terse
from barnabas.tools.connecting.connect import open_admin
from barnabas.tools.connecting.scrape import metrics_url

_EVERY_ADDRESS: Final = ("", "0.0.0.0", "::")
_SETTING: Final = "metrics.listener"


def metrics_addresses(bootstrap: str, command_config: str | None) -> list[str]:
    """The port is the one that is set: a broker whose port was taken uses one of the next, which its log names."""
    from barnabas.client import ConfigResource, ConfigResourceType

    with open_admin(bootstrap, command_config) as admin:
        nodes = {str(node.id): node.host for node in admin.describe_cluster().nodes}
        configs = admin.describe_configs([ConfigResource(ConfigResourceType.BROKER, broker_id) for broker_id in nodes]).all()
    addresses = []
    for resource, config in configs.items():
        entry = config.get(_SETTING)
        if entry is not None and entry.value:
            addresses.append(address_of(entry.value, nodes[resource.name]))
    if not addresses:
        raise Terse(f"No broker at {bootstrap} has metrics: set {_SETTING}=http://HOST:PORT for the brokers")
    return addresses


def address_of(listener: str, host: str) -> str:
    """The address of a listener on all addresses is on the host of its broker."""
    url = urlsplit(listener)
    if (url.hostname or "") in _EVERY_ADDRESS:
        return metrics_url(f"{url.scheme}://{host_and_port(host, url.port or 0)}")
    return metrics_url(listener)
