"""ApiVersions: the APIs that this broker serves, with their versions, and its features. The first request on a connection.

Versions 0 to 4.
Behaviour
- computed from the table of handlers and the registry. Versions that Kafka may still change are left out.
- a request of an unknown version gets a response of version 0, which every client can read, with the supported versions of ApiVersions.
Version notes
- 3: the client sends the name and version of its software (letters, digits, `-` and `.`), which telemetry subscriptions match; the
  response has features. Before 4 features whose lowest level
  is 0 are left out: older clients cannot read them.
Errors: UNSUPPORTED_VERSION; INVALID_REQUEST for an invalid client name or client version.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers import CONTROL, HANDLERS
from barnabas.broker.requests.reply import Reply
from barnabas.protocol import api_keys
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_versions_request import ApiVersionsRequest
from barnabas.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse, FinalizedFeatureKey, SupportedFeatureKey
from barnabas.protocol.registry import APIS

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.broker.topics.features import FeatureLevels

_CLIENT_INFORMATION_VERSION: Final = 3
_LEVEL_ZERO_VERSION: Final = 4
SOFTWARE_LENGTH_MAX: Final = 256  # characters that are kept of the name and of the version
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(broker: Broker, request: Request[ApiVersionsRequest]) -> Reply[ApiVersionsResponse]:
    if not request.api.has_version(request.version):
        request.version = 0
        return Reply.now(request, ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION, [_api_version(api_keys.API_VERSIONS)]))
    if request.version >= _CLIENT_INFORMATION_VERSION:
        message = request.message
        if not _is_valid(message):
            return Reply.now(request, ApiVersionsResponse(ErrorCode.INVALID_REQUEST))
        software = message.client_software_name[:SOFTWARE_LENGTH_MAX], message.client_software_version[:SOFTWARE_LENGTH_MAX]
        request.connection.client_software = software
    features = broker.features
    return Reply.now(
        request,
        ApiVersionsResponse(
            ErrorCode.NONE,
            served_versions(broker.cluster is not None),
            supported_features=_supported(features, request.version),
            finalized_features_epoch=features.epoch,
            finalized_features=[FinalizedFeatureKey(name, level, level) for name, level in features.finalized.items() if level != 0],
        ),
    )


@cache
def served_versions(is_clustered: bool = False) -> list[ApiVersion]:
    """The served APIs in the order of their keys. The list is shared and must not be changed. Brokers of a cluster also list the APIs
    between brokers, as Kafka's brokers do."""
    return [_api_version(key) for key in sorted(HANDLERS | CONTROL if is_clustered else HANDLERS)]


def _api_version(key: int) -> ApiVersion:
    api = APIS[key]
    return ApiVersion(key, api.lowest_version, api.stable_version)


def _is_valid(message: ApiVersionsRequest) -> bool:
    return bool(_SOFTWARE.fullmatch(message.client_software_name) and _SOFTWARE.fullmatch(message.client_software_version))


def _supported(features: FeatureLevels, version: int) -> list[SupportedFeatureKey]:
    return [
        SupportedFeatureKey(name, levels.lowest, levels.highest)
        for name, levels in features.supported.items()
        if levels.lowest > 0 or version >= _LEVEL_ZERO_VERSION
    ]
