from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from barnabas.broker.handlers import alter_user_scram_credentials, describe_user_scram_credentials
from barnabas.metadata.admin_tree import AdminTree
from barnabas.metadata.client import TreeClient
from barnabas.metadata.znodes.configs import encode_config
from barnabas.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.protocol.messages.alter_user_scram_credentials_response import AlterUserScramCredentialsResponse
from barnabas.protocol.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest, UserName
from barnabas.protocol.messages.describe_user_scram_credentials_response import DescribeUserScramCredentialsResponse
from barnabas.security.new_user import NewUser
from barnabas.security.operations import AclOperation
from barnabas.security.scram import ScramCredential, salted_password
from tests.unit.broker.security.scram_broker import Allowing, ScramBroker

SHA_256, SHA_512 = 1, 2
NAMES = {SHA_256: "SCRAM-SHA-256", SHA_512: "SCRAM-SHA-512"}
SALT = b"1nf8d4l4iwwo8z0e63e44l8nvl"
# What Apache Kafka 3.9.1 stored for the password `x`: tests/unit/metadata/data/znodes_kafka-3.9.1.txt.
BOB = (
    "salt=MW5mOGQ0bDRpd3dvOHowZTYzZTQ0bDhudmw=,stored_key=2ah3EVq1tFgf9a9sYaRlRmBA6r3rVJJ2PenDtbj5CKo=,"
    "server_key=8qDDzqBhH+esPhH/tiaLOAMgybHzl36VcW/tI0C1E5E=,iterations=4096"
)


class Contended:
    """A metadata store in which another broker writes to a znode just before its first change here."""

    def __init__(self, tree: TreeClient, data: bytes) -> None:
        self._tree = tree
        self._data: bytes | None = data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tree, name)

    async def set_data(self, path: str, data: bytes, version: int = -1) -> Any:
        if self._data is not None:
            await self._tree.set_data(path, self._data)
            self._data = None
        return await self._tree.set_data(path, data, version)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ScramBroker]:
    broker = ScramBroker(tmp_path)
    with broker:
        yield broker


def upsertion(user: str, mechanism: int = SHA_256, password: str = "x", iterations: int = 4096) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        user, mechanism, iterations, SALT, salted_password(NAMES[mechanism], password.encode(), SALT, iterations)
    )


def alter(broker: ScramBroker, *changes: ScramCredentialUpsertion | ScramCredentialDeletion) -> dict[str, tuple[int, str | None]]:
    request = AlterUserScramCredentialsRequest(
        [change for change in changes if isinstance(change, ScramCredentialDeletion)],
        [change for change in changes if isinstance(change, ScramCredentialUpsertion)],
    )
    answer = broker.exchange(alter_user_scram_credentials, request, AlterUserScramCredentialsResponse)
    return {result.user: (result.error_code, result.error_message) for result in answer.results}


def describe(broker: ScramBroker, *users: str) -> list[tuple[str, int, str | None, list[tuple[int, int]]]]:
    request = DescribeUserScramCredentialsRequest([UserName(user) for user in users] if users else None)
    answer = broker.exchange(describe_user_scram_credentials, request, DescribeUserScramCredentialsResponse)
    assert answer.error_code == 0
    return [
        (result.user, result.error_code, result.error_message, [(info.mechanism, info.iterations) for info in result.credential_infos])
        for result in answer.results
    ]


def stored(broker: ScramBroker, name: str) -> bytes | None:
    node = broker.run(broker.client.get(f"/config/users/{name}"))
    return node.data if node is not None else None


def test_the_znode_has_the_bytes_of_apache_kafka(broker: ScramBroker) -> None:
    assert alter(broker, upsertion("bob")) == {"bob": (0, None)}
    assert stored(broker, "bob") == b'{"version":1,"config":{"SCRAM-SHA-256":"' + BOB.encode() + b'"}}'
    changes = broker.run(broker.client.children("/config/changes")).names
    node = broker.run(broker.client.get(f"/config/changes/{changes[-1]}"))
    assert json.loads(node.data) == {"version": 2, "entity_path": "users/bob"}


def test_a_new_password_is_used_as_soon_as_the_client_has_the_response(broker: ScramBroker) -> None:
    alter(broker, upsertion("bob"))
    assert broker.credentials.user("SCRAM-SHA-256", "bob") == ScramCredential.parse(BOB)
    assert broker.credentials.user("SCRAM-SHA-512", "bob") is None
    alter(broker, upsertion("bob", password="y"))
    assert broker.credentials.user("SCRAM-SHA-256", "bob") == ScramCredential.of_password("SCRAM-SHA-256", "y", SALT, 4096)
    alter(broker, ScramCredentialDeletion("bob", SHA_256))
    assert broker.credentials.user("SCRAM-SHA-256", "bob") is None


def test_users_of_any_name_are_read_before_the_first_connection(tmp_path: Path) -> None:
    broker = ScramBroker(tmp_path, stored=("CN%3Da%20b", "%3Cdefault%3E", "<default>", "carol/clients/c1"), config={"SCRAM-SHA-256": BOB})
    with broker:
        users = ["CN=a b", "<default>", "carol", "c1", "carol/clients/c1"]
        known = [user for user in users if broker.credentials.user("SCRAM-SHA-256", user) is not None]
        assert known == ["CN=a b", "<default>"]
        assert [user for user, *_ in describe(broker)] == ["<default>", "CN=a b"]


def test_a_change_that_another_broker_wrote_is_applied(broker: ScramBroker) -> None:
    broker.run(broker.admin.change_config("users", "a%2Fb", {"SCRAM-SHA-512": BOB}))
    broker.run(broker.manager.process_changes())
    assert broker.credentials.user("SCRAM-SHA-512", "a/b") == ScramCredential.parse(BOB)
    broker.run(broker.admin.change_config("users", "a%2Fb", {}))
    broker.run(broker.manager.process_changes())
    assert broker.credentials.user("SCRAM-SHA-512", "a/b") is None


def test_quotas_in_the_same_znode_stay(broker: ScramBroker) -> None:
    broker.run(broker.admin.change_config("users", "alice", {"producer_byte_rate": "1024"}))
    alter(broker, upsertion("alice"))
    alter(broker, ScramCredentialDeletion("alice", SHA_256))
    assert stored(broker, "alice") == b'{"version":1,"config":{"producer_byte_rate":"1024"}}'


def test_the_znode_goes_with_the_last_credential_unless_a_client_of_the_user_has_quotas(broker: ScramBroker) -> None:
    for user in ("alice", "bob"):
        alter(broker, upsertion(user))
    broker.run(broker.admin.change_config("users", "bob/clients/c1", {"producer_byte_rate": "1024"}))
    for user in ("alice", "bob"):
        alter(broker, ScramCredentialDeletion(user, SHA_256))
    assert stored(broker, "alice") is None
    assert stored(broker, "bob") == b'{"version":1,"config":{}}'
    assert stored(broker, "bob/clients/c1") == b'{"version":1,"config":{"producer_byte_rate":"1024"}}'


def test_a_change_between_reading_and_writing_is_not_lost(broker: ScramBroker) -> None:
    broker.run(broker.admin.change_config("users", "alice", {"producer_byte_rate": "1"}))
    tree = Contended(broker.client, encode_config({"producer_byte_rate": "2"}))
    broker.run(AdminTree(cast("TreeClient", tree), Random(1)).update_config("users", "alice", lambda old: {**old, "SCRAM-SHA-256": BOB}))
    assert broker.run(broker.admin.fetch_config("users", "alice")) == {"producer_byte_rate": "2", "SCRAM-SHA-256": BOB}


def test_describe_names_mechanisms_and_iterations(broker: ScramBroker) -> None:
    alter(broker, upsertion("bob", SHA_512, iterations=8192), upsertion("alice"))
    alter(broker, upsertion("bob", SHA_256))
    broker.run(broker.admin.change_config("users", "quota only", {"producer_byte_rate": "1"}))
    alice, bob = ("alice", 0, "", [(SHA_256, 4096)]), ("bob", 0, "", [(SHA_256, 4096), (SHA_512, 8192)])
    assert describe(broker) == [alice, bob]
    assert describe(broker, "bob", "alice") == [bob, alice]


def test_describe_of_users_that_do_not_exist_or_are_named_twice(broker: ScramBroker) -> None:
    alter(broker, upsertion("alice"))
    missing = "Attempt to describe a user credential that does not exist: "
    twice = "Cannot describe SCRAM credentials for the same user twice in a single request: alice"
    assert describe(broker, "alice", "nobody", "alice", "") == [
        ("alice", 92, twice, []),
        ("nobody", 91, f"{missing}nobody", []),
        ("", 91, missing, []),
    ]


def test_only_the_controller_changes_credentials(broker: ScramBroker) -> None:
    broker.controller.is_active = False
    text = "This is not the correct controller for this cluster."
    assert alter(broker, upsertion("bob"), upsertion("alice"), ScramCredentialDeletion("bob", 9)) == {
        "alice": (41, text),
        "bob": (41, text),
    }
    assert stored(broker, "alice") is None


def test_altering_needs_alter_on_the_cluster_and_describing_describe(broker: ScramBroker) -> None:
    broker.authorizer = Allowing(AclOperation.DESCRIBE)
    ((user, (code, _)),) = alter(broker, upsertion("bob")).items()
    assert (user, code) == ("bob", 31)
    assert describe(broker) == []
    broker.authorizer = Allowing(AclOperation.ALTER)
    assert alter(broker, upsertion("bob")) == {"bob": (0, None)}
    request = DescribeUserScramCredentialsRequest([UserName("bob")])
    answer = broker.exchange(describe_user_scram_credentials, request, DescribeUserScramCredentialsResponse)
    assert (answer.error_code, answer.error_message) == (31, None)
    assert [(result.user, result.error_code) for result in answer.results] == [("", 31)]


def test_a_credential_that_cannot_be_read_lets_nobody_in(broker: ScramBroker, caplog: pytest.LogCaptureFixture) -> None:
    alter(broker, upsertion("bob"))
    caplog.set_level(logging.ERROR)
    broker.run(broker.admin.change_config("users", "bob", {"SCRAM-SHA-256": "salt=c2VjcmV0,stored_key=x"}))
    broker.run(broker.manager.process_changes())
    assert broker.credentials.user("SCRAM-SHA-256", "bob") is None
    assert "The SCRAM-SHA-256 credential of user bob is ignored" in caplog.text
    assert "c2VjcmV0" not in caplog.text


def test_many_users_take_turns(broker: ScramBroker) -> None:
    names = [f"u{number}" for number in range(120)]
    assert set(alter(broker, *(upsertion(name, iterations=4096) for name in names)).values()) == {(0, None)}
    assert len(broker.turns) == 2
    assert len(describe(broker)) == 120
    assert len(broker.turns) == 4


def test_a_new_user_is_created_once(broker: ScramBroker) -> None:
    """A restart with the same --add-scram must not bring back a password that was changed since."""
    first, second = NewUser.of_password("a b", "x", "SCRAM-SHA-256"), NewUser.of_password("a b", "y", "SCRAM-SHA-256")
    broker.run(broker.admin.change_config("users", "a%20b", {"producer_byte_rate": "1"}))
    broker.run(broker.users.create([first, NewUser.of_password("a b", "x", "SCRAM-SHA-512")]))
    broker.run(broker.users.create([second]))
    broker.run(broker.manager.process_changes())
    assert broker.credentials.user("SCRAM-SHA-256", "a b") == first.credential
    assert broker.credentials.user("SCRAM-SHA-512", "a b") is not None
    assert broker.run(broker.admin.fetch_config("users", "a%20b"))["producer_byte_rate"] == "1"
