"""Messages as JSON: Kafka's names, the fields of the version, sizes instead of records, and no secrets."""

from __future__ import annotations

import json
from random import Random

import pytest

from barnabas.protocol.message_json import HIDDEN, SECRETS, SIZE_MAX, VALUES_MAX, message_json
from barnabas.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from barnabas.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from barnabas.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.heartbeat_request import HeartbeatRequest
from barnabas.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from barnabas.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.protocol.slices import Records
from barnabas.uuid import Uuid
from tests.unit.protocol.instances import MESSAGES, random_message


def test_records_are_a_size() -> None:
    records = Records(b"x" * 100, 10, 60)
    request = ProduceRequest(None, -1, 1500, [TopicProduceData("orders", Uuid.ZERO, [PartitionProduceData(3, records)])])
    assert message_json(request, 9) == {
        "transactionalId": None,
        "acks": -1,
        "timeoutMs": 1500,
        "topicData": [{"name": "orders", "partitionData": [{"index": 3, "recordsSizeInBytes": 50}]}],
    }


def test_the_fields_are_those_of_the_version() -> None:
    request = MetadataRequest([MetadataRequestTopic(Uuid.ZERO, "orders")])
    assert message_json(request, 0) == {"topics": [{"name": "orders"}]}
    assert message_json(request, 12) == {
        "topics": [{"topicId": "AAAAAAAAAAAAAAAAAAAAAA", "name": "orders"}],
        "allowAutoTopicCreation": True,
        "includeTopicAuthorizedOperations": False,
    }


def test_a_tagged_field_is_written_if_it_is_set() -> None:
    assert "clusterId" not in message_json(FetchRequest(), 13)
    assert message_json(FetchRequest(cluster_id="here"), 13)["clusterId"] == "here"


def test_bytes_are_base64() -> None:
    request = SyncGroupRequest("g", 1, "m", assignments=[SyncGroupRequestAssignment("m", b"\x00\x01\x02")])
    assert message_json(request, 1)["assignments"] == [{"memberId": "m", "assignment": "AAEC"}]


def test_secrets_are_hidden() -> None:
    secret = b"do not tell"
    messages = [
        (SaslAuthenticateRequest(secret), 2),
        (AlterUserScramCredentialsRequest(upsertions=[ScramCredentialUpsertion("alice", 1, 4096, secret, secret)]), 0),
        (CreateDelegationTokenResponse(hmac=secret), 3),
    ]
    for message, version in messages:
        text = json.dumps(message_json(message, version))
        assert HIDDEN in text
        assert "ZG8gbm90" not in text  # the secret in base64


def test_every_field_that_may_hold_a_secret_is_one() -> None:
    """Bytes of the protocol that are not records are secrets or opaque to the broker. A new one needs a decision."""
    opaque = {
        *("Assignment", "Metadata", "UserData", "MemberMetadata", "MemberAssignment", "ProtocolMetadata"),  # of consumers
        *("Metrics", "RequestData", "ResponseData", "RequestPrincipal", "ClientHostAddress"),  # telemetry, envelopes
        *("UnalignedRecords", "Records"),
    }
    fields = {
        field.name
        for message in MESSAGES.values()
        for struct in message.structs.values()
        for field in struct.fields
        if field.type == "bytes"
    }
    assert fields - opaque == SECRETS


def test_a_large_message_is_a_bounded_text() -> None:
    topics = [FetchTopic(f"topic-{number}", partitions=[FetchPartition(0)] * 10) for number in range(10_000)]
    written = message_json(FetchRequest(topics=topics), 12)["topics"]
    assert len(json.dumps(written)) < VALUES_MAX * 200
    assert written[-1] == f"... {10_000 - len(written) + 1} more"
    long = message_json(HeartbeatRequest("g" * (SIZE_MAX + 5)), 4)["groupId"]
    assert long == "g" * SIZE_MAX + "... 5 more characters"
    assert message_json(SyncGroupRequest(assignments=[SyncGroupRequestAssignment("m", b"x" * 9_000)]), 1)["assignments"][0][
        "assignment"
    ].endswith(f"... {9_000 - SIZE_MAX} more bytes")


@pytest.mark.parametrize("name", MESSAGES)
def test_every_message_of_every_version_is_json_with_kafkas_names(name: str) -> None:
    schema = MESSAGES[name]
    for version in schema.versions:
        written = json.loads(json.dumps(message_json(random_message(name, version, Random(version)), version)))
        expected = {field.kafka_name for field in schema.root.fields if version in field.versions}
        assert {key.removesuffix("SizeInBytes") for key in written} <= expected
        assert {field.kafka_name for field in schema.root.fields if version in field.versions and version not in field.tagged} <= {
            key.removesuffix("SizeInBytes") for key in written
        }
