# Compiled by mypyc: src/compiled.toml lists this module.
"""The API versions that a broker reported when the client connected, and the choice among them."""

from __future__ import annotations

from barnabas.client.errors import UnsupportedVersion
from barnabas.protocol import api_keys
from barnabas.protocol.messages.api_versions_response import ApiVersionsResponse
from barnabas.protocol.registry import APIS


class BrokerVersions:
    """A broker's ApiVersions response: versions by API key, and its features."""

    def __init__(self, response: ApiVersionsResponse) -> None:
        self.ranges = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
        self.supported_features = {row.name: (row.min_version, row.max_version) for row in response.supported_features or ()}
        self.finalized_features = {row.name: row.max_version_level for row in response.finalized_features or ()}
        self.finalized_features_epoch = response.finalized_features_epoch

    def latest(self, api_key: int) -> int | None:
        """The highest common version, or None."""
        api, offered = APIS[api_key], self.ranges.get(api_key)
        if offered is None:
            return None
        version = min(api.stable_version, offered[1])
        return version if version >= max(api.lowest_version, offered[0]) else None

    def choose(self, api_key: int, *, lowest: int | None = None, highest: int | None = None) -> int:
        """The highest version within the limits that the broker supports; raises UnsupportedVersion in Kafka's words."""
        api, offered = APIS[api_key], self.ranges.get(api_key)
        if offered is None:
            raise UnsupportedVersion(f"The node does not support {_constant(api_key)}")
        least = api.lowest_version if lowest is None else lowest
        most = api.stable_version if highest is None else highest
        version = min(most, offered[1])
        if version < max(least, offered[0]):
            raise UnsupportedVersion(
                f"The node does not support {_constant(api_key)} with version in range [{least},{most}]. "
                f"The supported range is [{offered[0]},{offered[1]}]."
            )
        return version


def _constant(api_key: int) -> str:
    """An API's name in Kafka's messages: FIND_COORDINATOR."""
    return next(name for name, value in vars(api_keys).items() if value == api_key and isinstance(value, int))
