"""What the tools decide for --zookeeper before anything is written; that they write what Kafka's write is shown against a ZooKeeper."""

from __future__ import annotations

import base64
import hashlib
import hmac
import socket

import pytest

from barnabas import cli
from barnabas.errors import InvalidPartitions, InvalidReplicaAssignment, KafkaError
from barnabas.metadata.replica_assignment import BrokerMetadata
from barnabas.metadata.znodes.topics import ReplicaAssignment, TopicAssignment
from barnabas.security.password_encoder import PasswordEncoder
from barnabas.tools.command_line.failures import BadArgument, ConfigRefused
from barnabas.tools.tree.zookeeper_tree import NotConnected, ZooKeeperCluster, on_cluster, scala_set
from barnabas.tools.zookeeper_mode.zookeeper_configs import parse_entity, scram_credential, with_encoded_passwords
from barnabas.tools.zookeeper_mode.zookeeper_topics import new_partitions

BROKERS = [BrokerMetadata(0), BrokerMetadata(1), BrokerMetadata(2)]
TOPIC = TopicAssignment({0: ReplicaAssignment((1, 2)), 1: ReplicaAssignment((2, 0))})


async def nothing(cluster: ZooKeeperCluster) -> None:
    raise AssertionError("there is no cluster")


def test_a_zookeeper_that_is_not_there_is_told_with_the_fix() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with pytest.raises(NotConnected, match="Start ZooKeeper, or correct --zookeeper"):
        on_cluster(f"127.0.0.1:{port}", nothing, timeout_ms=200)


@pytest.mark.parametrize("address", ["", "/chroot", "localhost:port", "localhost:1//a"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(BadArgument, match=r"^--zookeeper"):
        on_cluster(address, nothing)


@pytest.mark.parametrize(
    ("types", "names", "shown", "path"),
    [
        (["topics"], ["T"], "topic 'T'", "T"),
        (["brokers"], [""], "default brokers", "<default>"),
        (["users"], ["a b"], "user-principal 'a b'", "a%20b"),
        (["clients", "users"], ["c", "u"], "user-principal 'u', client-id 'c'", "u/clients/c"),
        (["users", "clients"], ["", "c"], "default user-principal, client-id 'c'", "<default>/clients/c"),
    ],
)
def test_an_entity_has_a_name_for_people_and_a_path(types: list[str], names: list[str], shown: str, path: str) -> None:
    entity = parse_entity(types, names, altering=True)
    assert (str(entity), entity.path) == (shown, path)


def test_every_type_needs_a_name_to_be_altered() -> None:
    with pytest.raises(BadArgument, match="must be specified with each --entity-type"):
        parse_entity(["users", "clients"], ["u"], altering=True)


def test_new_partitions_go_on_from_the_leader_of_the_first() -> None:
    assert new_partitions("T", TOPIC, BROKERS, 4, {}) == {2: (0, 2), 3: (1, 2)}


def test_new_partitions_by_hand_are_those_past_the_existing_ones() -> None:
    assert new_partitions("T", TOPIC, BROKERS, 3, {0: [0, 1], 1: [0, 1], 2: [2, 1]}) == {2: (2, 1)}


@pytest.mark.parametrize(
    ("count", "given", "error"),
    [(2, {}, InvalidPartitions), (3, {2: [0]}, InvalidReplicaAssignment), (3, {2: [0, 9]}, KafkaError)],
)
def test_partitions_that_cannot_be_added_are_refused(count: int, given: dict[int, list[int]], error: type[Exception]) -> None:
    with pytest.raises(error):
        new_partitions("T", TOPIC, BROKERS, count, given)


def test_a_credential_proves_the_password_without_holding_it() -> None:
    fields = dict(part.split("=", 1) for part in scram_credential("SCRAM-SHA-256", "iterations=4097,password=secret").split(","))
    salted = hashlib.pbkdf2_hmac("sha256", b"secret", base64.b64decode(fields["salt"]), int(fields["iterations"]))
    assert base64.b64decode(fields["server_key"]) == hmac.digest(salted, b"Server Key", "sha256")
    assert base64.b64decode(fields["stored_key"]) == hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    assert fields["iterations"] == "4097"


PASSWORD = "listener.name.external.ssl.key.password"


def test_the_password_of_a_broker_is_encrypted_and_the_settings_of_the_encoder_are_not_written() -> None:
    settings = {
        "password.encoder.secret": "s",
        "password.encoder.cipher.algorithm": "AES/GCM/NoPadding",
        "password.encoder.iterations": "1024",
    }
    written = with_encoded_passwords({PASSWORD: "geheim", "max.connections": "5"}, settings)
    assert written.keys() == {PASSWORD, "max.connections"}
    assert "cipherAlgorithm:AES/GCM/NoPadding" in written[PASSWORD]
    assert PasswordEncoder("s").decode(written[PASSWORD]) == "geheim"


def test_the_password_of_a_broker_needs_the_secret_of_the_encoder() -> None:
    with pytest.raises(BadArgument, match=r"password\.encoder\.secret must be specified to update Set\(listener\.name\.external"):
        with_encoded_passwords({PASSWORD: "geheim"}, {})
    with pytest.raises(ConfigRefused, match=r"password\.encoder\.cipher\.algorithm=DES is not supported"):
        with_encoded_passwords({PASSWORD: "geheim"}, {"password.encoder.secret": "s", "password.encoder.cipher.algorithm": "DES"})
    assert with_encoded_passwords({"max.connections": "5"}, {}) == {"max.connections": "5"}


def test_sets_are_shown_as_scala_shows_them() -> None:
    assert (scala_set("ab"), scala_set("abcde")) == ("Set(a, b)", "HashSet(a, b, c, d, e)")


def test_options_of_the_old_way_are_refused_without_zookeeper(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["topics", "--bootstrap-server", "localhost:1", "--list", "--force"]) == 1
    assert "Option(s) [force] are unavailable" in capsys.readouterr().err


def test_one_address_is_enough(capsys: pytest.CaptureFixture[str]) -> None:
    for tool in (["topics", "--list"], ["configs", "--describe", "--topic", "T"]):
        assert cli.main([*tool, "--bootstrap-server", "localhost:1", "--zookeeper", "localhost:1"]) == 1
        assert "Only one of --bootstrap-server or --zookeeper must be specified" in capsys.readouterr().err
