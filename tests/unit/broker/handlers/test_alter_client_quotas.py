from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from barnabas.metadata import paths
from barnabas.protocol.messages.alter_client_quotas_request import AlterClientQuotasRequest, EntityData, EntryData, OpData
from barnabas.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse
from barnabas.protocol.messages.describe_client_quotas_request import DescribeClientQuotasRequest
from tests.unit.broker.config_broker import ConfigBroker
from tests.unit.broker.handlers.granting import decisions, granting

PRODUCE, FETCH, PERCENTAGE, MUTATIONS = "producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"
CONNECTIONS = "connection_creation_rate"
CREDENTIAL = "salt=c2FsdA==,stored_key=a2V5,server_key=a2V5,iterations=4096"

Entity = Mapping[str, str | None]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ConfigBroker]:
    with ConfigBroker(tmp_path, {"broker.id": "0", "log.dirs": str(tmp_path)}) as broker:
        yield broker


def entry(entity: Entity | Sequence[tuple[str, str | None]], *operations: tuple[str, float | None]) -> EntryData:
    parts = entity.items() if isinstance(entity, Mapping) else entity
    return EntryData([EntityData(*part) for part in parts], [OpData(key, value or 0.0, value is None) for key, value in operations])


def ask(broker: ConfigBroker, *entries: EntryData, validate_only: bool = False, version: int = 1) -> AlterClientQuotasResponse:
    response = broker.ask("alter_client_quotas", AlterClientQuotasRequest(list(entries), validate_only), version)
    assert isinstance(response, AlterClientQuotasResponse)
    return response


def outcomes(response: AlterClientQuotasResponse) -> list[tuple[dict[str, str | None], int, str | None]]:
    return [
        ({part.entity_type: part.entity_name for part in entry.entity}, entry.error_code, entry.error_message) for entry in response.entries
    ]


def altered(broker: ConfigBroker, entity: Entity, **quotas: float | None) -> None:
    assert outcomes(ask(broker, entry(entity, *quotas.items()))) == [(entity, 0, None)]


def described(broker: ConfigBroker) -> list[tuple[dict[str, str | None], dict[str, float]]]:
    response: Any = broker.ask("describe_client_quotas", DescribeClientQuotasRequest(), 1)
    return [
        ({part.entity_type: part.entity_name for part in entry.entity}, {value.key: value.value for value in entry.values})
        for entry in response.entries
    ]


def stored(broker: ConfigBroker, path: str) -> bytes | None:
    node = broker.run(broker.client.get(f"/config/{path}"))
    return node.data if node is not None else None


def exists(broker: ConfigBroker, path: str) -> bool:
    return broker.run(broker.client.exists(f"/config/{path}")) is not None


@pytest.mark.parametrize(
    ("entity", "path"),
    [
        ({"user": "al ice"}, "users/al%20ice"),
        ({"user": "CN=a,O=*~"}, "users/CN%3Da%2CO%3D%2A%7E"),
        ({"user": None}, "users/<default>"),
        ({"client-id": "c/1"}, "clients/c%2F1"),
        ({"client-id": None}, "clients/<default>"),
        ({"user": "alice", "client-id": "c1"}, "users/alice/clients/c1"),
        ({"user": None, "client-id": "c1"}, "users/<default>/clients/c1"),
        ({"user": "alice", "client-id": None}, "users/alice/clients/<default>"),
        ({"user": None, "client-id": None}, "users/<default>/clients/<default>"),
    ],
)
def test_the_tree_is_kafkas(broker: ConfigBroker, entity: Entity, path: str) -> None:
    altered(broker, entity, **{PRODUCE: 1024.0, PERCENTAGE: 1e7})
    assert stored(broker, path) == b'{"version":1,"config":{"request_percentage":"1.0E7","producer_byte_rate":"1024"}}'
    assert described(broker) == [(entity, {PRODUCE: 1024.0, PERCENTAGE: 1e7})]
    changes = broker.run(broker.client.children(paths.CONFIG_CHANGES)).names
    notification = broker.run(broker.client.get(f"{paths.CONFIG_CHANGES}/{changes[-1]}")).data
    assert notification == f'{{"version":2,"entity_path":"{path}"}}'.encode()


def test_addresses_have_a_connection_rate(broker: ConfigBroker) -> None:
    for host, name in (("127.0.0.1", "127.0.0.1"), ("::1", "%3A%3A1"), (None, "<default>")):
        altered(broker, {"ip": host}, **{CONNECTIONS: 20.0})
        assert stored(broker, f"ips/{name}") == b'{"version":1,"config":{"connection_creation_rate":"20"}}'


def test_quotas_are_changed_one_by_one_and_the_last_one_takes_its_znode_with_it(broker: ConfigBroker) -> None:
    both = {"user": "alice", "client-id": "c1"}
    altered(broker, both, **{PRODUCE: 1.0, FETCH: 2.0})
    altered(broker, both, **{PRODUCE: 3.0, MUTATIONS: 0.5})
    assert described(broker) == [(both, {PRODUCE: 3.0, FETCH: 2.0, MUTATIONS: 0.5})]
    altered(broker, both, **{PRODUCE: None, FETCH: None, MUTATIONS: None})
    assert described(broker) == []
    assert not exists(broker, "users/alice")


def test_a_parent_with_quotas_or_other_clients_stays(broker: ConfigBroker) -> None:
    altered(broker, {"user": "alice"}, **{PRODUCE: 1.0})
    for client in ("c1", "c2"):
        altered(broker, {"user": "alice", "client-id": client}, **{PRODUCE: 1.0})
    altered(broker, {"user": "alice", "client-id": "c1"}, **{PRODUCE: None})
    assert not exists(broker, "users/alice/clients/c1") and exists(broker, "users/alice/clients/c2")
    altered(broker, {"user": "alice"}, **{PRODUCE: None})
    assert stored(broker, "users/alice") == b'{"version":1,"config":{}}'
    altered(broker, {"user": "alice"}, **{PRODUCE: 1.0})
    altered(broker, {"user": "alice", "client-id": "c2"}, **{PRODUCE: None})
    assert exists(broker, "users/alice") and not exists(broker, "users/alice/clients")


def test_the_credentials_of_a_user_stay(broker: ConfigBroker) -> None:
    broker.run(broker.admin.change_config("users", "alice", {"SCRAM-SHA-256": CREDENTIAL}))
    altered(broker, {"user": "alice"}, **{PRODUCE: 1.0})
    altered(broker, {"user": "alice"}, **{PRODUCE: None, "SCRAM-SHA-256": None})
    assert broker.run(broker.admin.fetch_config("users", "alice")) == {"SCRAM-SHA-256": CREDENTIAL}
    altered(broker, {"user": "alice", "client-id": "c"}, **{PRODUCE: 1.0})
    altered(broker, {"user": "alice", "client-id": "c"}, **{PRODUCE: None})
    assert broker.run(broker.admin.fetch_config("users", "alice")) == {"SCRAM-SHA-256": CREDENTIAL}


def test_a_quota_that_is_not_there_can_be_removed(broker: ConfigBroker) -> None:
    altered(broker, {"user": "nobody"}, **{PRODUCE: None, "no_such_quota": None})
    assert not exists(broker, "users/nobody")
    assert broker.run(broker.client.children(paths.CONFIG_CHANGES)).names == []


def test_validate_only_writes_nothing(broker: ConfigBroker) -> None:
    good, bad = entry({"user": "alice"}, (PRODUCE, 1.0)), entry({"user": "bob"}, (PRODUCE, 0.0))
    assert [code for _, code, _ in outcomes(ask(broker, good, bad, validate_only=True, version=0))] == [0, 42]
    assert described(broker) == []


def test_an_entity_is_changed_as_a_whole_and_alone(broker: ConfigBroker) -> None:
    response = ask(broker, entry({"user": "a"}, (PRODUCE, 1.0), ("no_such_quota", 1.0)), entry({"user": "b"}, (PRODUCE, 1.0)))
    assert outcomes(response) == [({"user": "a"}, 42, "Invalid configuration key no_such_quota"), ({"user": "b"}, 0, None)]
    assert described(broker) == [({"user": "b"}, {PRODUCE: 1.0})]


@pytest.mark.parametrize(
    ("entity", "name", "value", "text"),
    [
        ({}, PRODUCE, 1.0, "Invalid empty client quota entity"),
        ({"planet": "mars"}, PRODUCE, 1.0, "Unhandled client quota entity type: planet"),
        ({"planet": ""}, PRODUCE, 1.0, "Unhandled client quota entity type: planet"),
        ({"user": ""}, PRODUCE, 1.0, "Empty user not supported"),
        ({"client-id": ""}, PRODUCE, 1.0, "Empty client-id not supported"),
        ({"ip": ""}, CONNECTIONS, 1.0, "Empty ip not supported"),
        (
            {"user": "a", "ip": "127.0.0.1"},
            CONNECTIONS,
            1.0,
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
        ),
        ({"ip": "300.1.1.1"}, CONNECTIONS, 1.0, "300.1.1.1 is not a valid IP or resolvable host."),
        ({"ip": "x" * 70}, CONNECTIONS, 1.0, f"{'x' * 70} is not a valid IP or resolvable host."),
        ({"ip": "127.0.0.1"}, PRODUCE, 1.0, "Invalid configuration key producer_byte_rate"),
        ({"user": "a"}, CONNECTIONS, 1.0, "Invalid configuration key connection_creation_rate"),
        ({"user": "a"}, "SCRAM-SHA-256", 1.0, "Invalid configuration key SCRAM-SHA-256"),
        ({"user": "a"}, PRODUCE, 0.0, "Quota producer_byte_rate must be greater than 0"),
        ({"user": "a"}, PERCENTAGE, -1.0, "Quota request_percentage must be greater than 0"),
        ({"user": "a"}, MUTATIONS, math.nan, "Quota controller_mutation_rate must be greater than 0"),
        ({"ip": "127.0.0.1"}, CONNECTIONS, 0.0, "Quota connection_creation_rate must be greater than 0"),
        ({"user": "a"}, PRODUCE, 1.5, "producer_byte_rate cannot be a fractional value."),
        ({"user": "a"}, FETCH, 1e19, "Proposed value for consumer_byte_rate is too large for a LONG."),
        ({"ip": "127.0.0.1"}, CONNECTIONS, 3e9, "Proposed value for connection_creation_rate is too large for an INT."),
    ],
)
def test_what_kafka_refuses(broker: ConfigBroker, entity: Entity, name: str, value: float, text: str) -> None:
    changed = EntryData([EntityData(*part) for part in entity.items()], [OpData(name, value, False)])
    assert outcomes(ask(broker, changed)) == [(entity, 42, text)]
    assert described(broker) == []


def test_the_largest_quotas(broker: ConfigBroker) -> None:
    altered(broker, {"user": "a"}, **{PRODUCE: 2.0**63, PERCENTAGE: math.inf})
    assert broker.run(broker.admin.fetch_config("users", "a")) == {PRODUCE: str(2**63 - 1), PERCENTAGE: "Infinity"}


def test_of_an_entity_that_is_named_twice_the_first_change_is_made_and_the_second_reported(broker: ConfigBroker) -> None:
    twice = (entry({"user": "a", "client-id": None}, (PRODUCE, 1.0)), entry({"client-id": None, "user": "a"}, (PRODUCE, 2.0)))
    text = "Ignoring duplicate entity ClientQuotaEntity(entries={client-id=null, user=a})"
    assert outcomes(ask(broker, *twice)) == [({"user": "a", "client-id": None}, 42, text)]
    assert described(broker) == [({"user": "a", "client-id": None}, {PRODUCE: 1.0})]


def test_a_quota_that_is_named_twice_is_not_set(broker: ConfigBroker) -> None:
    text = "Ignoring duplicate entity ClientQuotaEntity(entries={user=a})"
    assert outcomes(ask(broker, entry({"user": "a"}, (PRODUCE, 1.0), (PRODUCE, 2.0)))) == [({"user": "a"}, 42, text)]
    assert described(broker) == []


def test_of_a_type_that_is_given_twice_the_last_name_counts(broker: ConfigBroker) -> None:
    assert outcomes(ask(broker, entry([("user", "a"), ("user", "b")], (PRODUCE, 1.0)))) == [({"user": "b"}, 0, None)]


def test_more_changes_than_kafka_makes_at_once(broker: ConfigBroker) -> None:
    entries = [entry({"user": f"u{number}"}, (PRODUCE, 1.0), (FETCH, 1.0)) for number in range(5001)]
    response = ask(broker, *entries)
    assert {(code, text) for _, code, text in outcomes(response)} == {(44, "Request parameters do not satisfy the configured policy.")}
    assert len(response.entries) == 5001 and described(broker) == []


def test_a_request_of_many_entities_takes_turns(broker: ConfigBroker) -> None:
    response = ask(broker, *[entry({"user": f"u{number}"}, (PRODUCE, 1.0)) for number in range(120)])
    assert len(response.entries) == 120 and len(described(broker)) == 120


def test_it_needs_alter_configs_on_the_cluster(broker: ConfigBroker) -> None:
    broker.access = granting("DESCRIBE_CONFIGS cluster")
    denied = ask(broker, entry({"user": "alice"}, (PRODUCE, 1.0)), entry({"client-id": None}, (PRODUCE, 0.0)))
    text = "Cluster authorization failed."
    assert outcomes(denied) == [({"user": "alice"}, 31, text), ({"client-id": None}, 31, text)]
    assert decisions(broker.access) == ["ALTER_CONFIGS cluster"]
    broker.access = granting("ALTER_CONFIGS cluster")
    altered(broker, {"user": "alice"}, **{PRODUCE: 1.0})


def test_the_quotas_reach_the_listeners_at_once_and_at_the_next_start(broker: ConfigBroker) -> None:
    quotas: list[tuple[Entity, Mapping[str, float]]] = []
    rates: list[tuple[str | None, Sequence[str], float | None]] = []

    def listen() -> None:
        broker.manager.on_quota_change.append(lambda entity, values: quotas.append((dict(entity), dict(values))))
        broker.manager.on_ip_quota_change.append(lambda host, addresses, rate: rates.append((host, list(addresses), rate)))

    listen()
    altered(broker, {"user": "alice", "client-id": None}, **{PRODUCE: 1.0, FETCH: 2.0})
    altered(broker, {"client-id": "c"}, **{PERCENTAGE: 5.0})
    altered(broker, {"ip": "::ffff:127.0.0.1"}, **{CONNECTIONS: 3.0})
    altered(broker, {"ip": None}, **{CONNECTIONS: 4.0})
    made = [({"user": "alice", "client-id": None}, {PRODUCE: 1.0, FETCH: 2.0}), ({"client-id": "c"}, {PERCENTAGE: 5.0})]
    assert quotas == made
    assert rates == [("::ffff:127.0.0.1", ["127.0.0.1"], 3.0), (None, [], 4.0)]
    altered(broker, {"client-id": "c"}, **{PERCENTAGE: None})
    altered(broker, {"ip": None}, **{CONNECTIONS: None})
    assert (quotas[-1], rates[-1]) == (({"client-id": "c"}, {}), (None, [], None))
    quotas.clear()
    rates.clear()
    broker.run(broker.manager.close())
    broker.make_manager()
    listen()
    broker.run(broker.manager.start())
    assert quotas == made[:1]
    assert rates == [("::ffff:127.0.0.1", ["127.0.0.1"], 3.0)]


def test_a_quota_that_is_no_number_was_written_by_hand_and_is_skipped(broker: ConfigBroker, caplog: pytest.LogCaptureFixture) -> None:
    broker.run(broker.admin.change_config("clients", "c", {PRODUCE: "fast", FETCH: "7"}))
    assert described(broker) == [({"client-id": "c"}, {FETCH: 7.0})]
    assert "'fast' is no number" in caplog.text
