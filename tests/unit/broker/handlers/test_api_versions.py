from __future__ import annotations

import asyncio
import struct

import pytest

from barnabas.broker.handlers import HANDLERS
from barnabas.broker.topics.features import FeatureLevels, Levels
from barnabas.protocol import api_keys
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import serialize
from barnabas.protocol.messages.api_versions_request import ApiVersionsRequest
from barnabas.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse, FinalizedFeatureKey, SupportedFeatureKey
from barnabas.protocol.messages.request_header import RequestHeader
from barnabas.protocol.registry import APIS
from tests.unit.broker.handlers.asking import a_broker, asked, exchange, read

# What Apache Kafka 4.2.0 advertises of the APIs served here: lowest and highest version.
KAFKA_4_2 = {
    0: (0, 13), 1: (4, 18), 2: (1, 11), 3: (0, 13), 10: (0, 6), 17: (0, 1), 18: (0, 4), 19: (2, 7), 20: (1, 6), 21: (0, 2), 22: (0, 5),
    23: (2, 4), 29: (1, 3), 30: (1, 3), 31: (1, 3), 32: (1, 4), 33: (0, 2), 34: (1, 2), 35: (1, 4), 36: (0, 2), 37: (0, 3),
    38: (1, 3), 39: (1, 2), 40: (1, 2), 41: (1, 3), 43: (0, 2),
    44: (0, 1), 48: (0, 1), 50: (0, 0), 51: (0, 0), 57: (0, 2), 60: (0, 2), 61: (0, 0), 64: (0, 0),
    71: (0, 0), 72: (0, 0), 74: (0, 1), 75: (0, 0),
}  # fmt: skip


def api_versions(
    version: int, name: str = "test", software_version: str = "1.0", features: FeatureLevels | None = None
) -> ApiVersionsResponse:
    broker = a_broker() if features is None else a_broker(features=features)
    request = ApiVersionsRequest(name, software_version) if version >= 3 else ApiVersionsRequest()
    return asked(broker, request, ApiVersionsResponse, version)


def features_of(supported: dict[str, Levels], finalized: dict[str, int], epoch: int) -> FeatureLevels:
    features = FeatureLevels(a_broker().tree, supported)
    features.finalized, features.epoch = finalized, epoch
    return features


@pytest.mark.parametrize("version", range(5))
def test_every_version_lists_what_is_served_and_nothing_else(version: int) -> None:
    response = api_versions(version)
    assert response.error_code == 0
    assert [api_key.api_key for api_key in response.api_keys] == sorted(HANDLERS)


def test_the_highest_versions_are_those_of_kafka_4_2_and_the_lowest_no_higher() -> None:
    served = {api_key.api_key: api_key for api_key in api_versions(4).api_keys}
    for key in KAFKA_4_2.keys() & served.keys():
        lowest, highest = KAFKA_4_2[key]
        assert served[key].max_version == highest, APIS[key]
        assert served[key].min_version <= lowest, APIS[key]


def test_old_versions_that_kafka_4_dropped_are_still_told() -> None:
    served = {api_key.api_key: api_key.min_version for api_key in api_versions(0).api_keys}
    assert (served[api_keys.FETCH], served[api_keys.LIST_OFFSETS], served[api_keys.CREATE_TOPICS]) == (0, 0, 0)


def test_a_version_that_may_still_change_is_not_told() -> None:
    (advertised,) = [api_key for api_key in api_versions(0).api_keys if api_key.api_key == api_keys.INIT_PRODUCER_ID]
    assert (advertised.max_version, APIS[api_keys.INIT_PRODUCER_ID].highest_version) == (5, 6)


@pytest.mark.parametrize("version", [5, 50, 32767])
def test_a_version_that_is_not_known_is_answered_in_version_0_with_those_that_are(version: int) -> None:
    frame = serialize(RequestHeader(api_keys.API_VERSIONS, version, 17, "test"), 2) + b"whatever that version has"
    answer = asyncio.run(exchange(a_broker(), frame))
    assert answer == struct.pack(">ihihhh", 17, 35, 1, 18, 0, 4)  # the bytes of Apache Kafka 4.2
    assert read(answer, ApiVersionsResponse, 0) == ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION, [ApiVersion(18, 0, 4)])


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("fault", ["", "a b", "-a", "a.", "\u00e4"])
def test_a_client_has_to_have_a_proper_name_and_version(version: int, fault: str) -> None:
    for response in (api_versions(version, name=fault), api_versions(version, software_version=fault)):
        assert response == ApiVersionsResponse(ErrorCode.INVALID_REQUEST)


@pytest.mark.parametrize("name", ["a", "apache-kafka-java", "1.2.3", "A..-9"])
def test_names_of_letters_digits_dots_and_dashes_are_proper(name: str) -> None:
    assert api_versions(3, name).error_code == 0


def test_a_broker_without_features_tells_none() -> None:
    response = api_versions(4, features=features_of({}, {}, -1))
    assert (response.supported_features, response.finalized_features, response.finalized_features_epoch) == ([], [], -1)


def test_features_are_told_with_their_epoch() -> None:
    response = api_versions(4, features=features_of({"group.version": Levels(0, 1)}, {"group.version": 1}, 5))
    assert response.supported_features == [SupportedFeatureKey("group.version", 0, 1)]
    assert response.finalized_features == [FinalizedFeatureKey("group.version", 1, 1)]
    assert response.finalized_features_epoch == 5


def test_before_version_4_features_with_a_level_0_are_left_out_of_the_supported_ones() -> None:
    features = features_of({"group.version": Levels(0, 1), "other.version": Levels(1, 2)}, {"group.version": 1}, 5)
    response = api_versions(3, features=features)
    assert response.supported_features == [SupportedFeatureKey("other.version", 1, 2)]
    assert response.finalized_features == [FinalizedFeatureKey("group.version", 1, 1)]


def test_a_feature_that_is_switched_off_is_not_among_the_finalized() -> None:
    assert api_versions(4, features=features_of({"group.version": Levels(0, 1)}, {"group.version": 0}, 5)).finalized_features == []
