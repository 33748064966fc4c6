from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.config.client_quotas import DEFAULT, EXACT, SPECIFIED
from barnabas.broker.handlers import describe_client_quotas
from barnabas.broker.security.access import Access
from barnabas.broker.security.session import Session
from barnabas.protocol.message import parse, serialize
from barnabas.protocol.messages.describe_client_quotas_request import ComponentData, DescribeClientQuotasRequest
from barnabas.protocol.messages.describe_client_quotas_response import DescribeClientQuotasResponse
from barnabas.security.principal import ANONYMOUS
from tests.unit.broker.config_broker import ConfigBroker
from tests.unit.broker.handlers.asking import request_of
from tests.unit.broker.handlers.granting import Grants

QUOTAS = {
    ("users", "al%20ice"): {"producer_byte_rate": "1024", "SCRAM-SHA-256": "secret"},
    ("users", "<default>"): {"consumer_byte_rate": "2.5"},
    ("users", "al%20ice/clients/c1"): {"request_percentage": "50"},
    ("users", "scram only"): {"SCRAM-SHA-256": "secret"},
    ("clients", "c1"): {"producer_byte_rate": "7"},
    ("ips", "127.0.0.1"): {"connection_creation_rate": "9"},
}
ALICE, EVERYBODY = {"user": "al ice"}, {"user": None}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ConfigBroker]:
    with ConfigBroker(tmp_path, {"broker.id": "0", "log.dirs": str(tmp_path)}) as broker:
        for (kind, name), config in QUOTAS.items():
            broker.run(broker.admin.change_config(kind, name, config))
        yield broker


def ask(broker: ConfigBroker, *components: tuple[str, int, str | None], strict: bool = False, authorizer: Any = None) -> Any:
    request = request_of(DescribeClientQuotasRequest([ComponentData(*component) for component in components], strict), 1)
    request.connection.session = Session(ANONYMOUS, "127.0.0.1")
    parts: Any = SimpleNamespace(configs=broker.manager, access=Access(authorizer))
    answer = broker.run(describe_client_quotas.handle(parts, request).result())
    return parse(DescribeClientQuotasResponse, serialize(answer, 1), 1)


def described(broker: ConfigBroker, *components: tuple[str, int, str | None], strict: bool = True) -> list[tuple[object, object]]:
    answer = ask(broker, *components, strict=strict)
    assert answer.error_code == 0
    return [
        ({part.entity_type: part.entity_name for part in entry.entity}, {value.key: value.value for value in entry.values})
        for entry in answer.entries
    ]


def test_quotas_of_users_are_described_without_their_credentials(broker: ConfigBroker) -> None:
    users = described(broker, ("user", SPECIFIED, None))
    assert sorted(users, key=str) == sorted([(ALICE, {"producer_byte_rate": 1024.0}), (EVERYBODY, {"consumer_byte_rate": 2.5})], key=str)
    assert described(broker, ("user", EXACT, "al ice")) == [(ALICE, {"producer_byte_rate": 1024.0})]
    assert described(broker, ("user", DEFAULT, None)) == [(EVERYBODY, {"consumer_byte_rate": 2.5})]
    assert described(broker, ("user", EXACT, "nobody")) == []


def test_entities_with_more_parts_match_unless_the_filter_is_strict(broker: ConfigBroker) -> None:
    both = ({"user": "al ice", "client-id": "c1"}, {"request_percentage": 50.0})
    assert described(broker, ("user", EXACT, "al ice"), strict=False) == [(ALICE, {"producer_byte_rate": 1024.0}), both]
    assert described(broker, ("user", EXACT, "al ice"), ("client-id", SPECIFIED, None)) == [both]
    assert described(broker, ("client-id", EXACT, "c1")) == [({"client-id": "c1"}, {"producer_byte_rate": 7.0})]
    assert described(broker, ("ip", EXACT, "127.0.0.1")) == [({"ip": "127.0.0.1"}, {"connection_creation_rate": 9.0})]
    assert len(described(broker, strict=False)) == 5


@pytest.mark.parametrize(
    ("components", "code", "text"),
    [
        ([("", EXACT, "a")], 42, "Invalid empty entity type."),
        ([("user", EXACT, "a"), ("user", DEFAULT, None)], 42, "Entity type user cannot appear more than once in the filter."),
        ([("colour", EXACT, "a")], 35, "Unsupported entity type colour"),
        ([("user", EXACT, None)], 42, "Request specified MATCH_TYPE_EXACT, but set match string to null."),
        ([("user", DEFAULT, "a")], 42, "Request specified MATCH_TYPE_DEFAULT, but also specified a match string."),
        ([("user", SPECIFIED, "a")], 42, "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string."),
        ([("user", 3, None)], 42, "Unknown match type 3"),
        (
            [("user", EXACT, "a"), ("ip", SPECIFIED, None)],
            42,
            "Invalid entity filter component combination. IP filter component should not be used with user or clientId filter component.",
        ),
    ],
)
def test_a_filter_that_kafka_refuses(broker: ConfigBroker, components: list[tuple[str, int, str | None]], code: int, text: str) -> None:
    answer = ask(broker, *components)
    assert (answer.error_code, answer.error_message, answer.entries) == (code, text, None)


def test_it_needs_describe_configs_on_the_cluster(broker: ConfigBroker) -> None:
    answer = ask(broker, authorizer=Grants([]))
    assert (answer.error_code, answer.error_message, answer.entries) == (31, None, None)
