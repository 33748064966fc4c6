"""Every client with GSSAPI, over SASL_SSL, with tickets of a real key distribution center: what it gets is what Apache Kafka 4.2 gives it.

tests/data/kerberos-clients-4.2.0.json is what the clients get from Apache Kafka; `make secured-clients` writes it anew.
"""

from __future__ import annotations

import json
from functools import partial

import pytest

from tests.integration.kerberos.clients.play import CLIENTS, scenarios_of
from tests.integration.kerberos.clients.record import outcomes_now, recorded
from tests.integration.security.clients.play import LET_IN, Outcomes
from tests.kerberos import Kdc
from tests.once import once

pytestmark = [pytest.mark.java, pytest.mark.timeout(500)]


@pytest.fixture(scope="session")
def outcomes(kdc: Kdc, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Outcomes:
    """`kdc` skips the tests where there is no Kerberos; the clients have a key distribution center of their own."""
    play = partial(outcomes_now, tmp_path_factory.mktemp("kerberos"))
    made: Outcomes = json.loads(once(tmp_path_factory, worker_id, "kerberos-clients.json", play))
    return made


@pytest.mark.parametrize(("client", "scenario"), [(client, scenario) for client in CLIENTS for scenario in scenarios_of(client)])
def test_a_client_gets_what_it_gets_from_apache_kafka(client: str, scenario: str, outcomes: Outcomes) -> None:
    assert outcomes[client][scenario] == recorded()[client][scenario]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_ticket_lets_every_client_in_and_again_when_its_session_expires(client: str) -> None:
    assert {recorded()[client][scenario] for scenario in ("a ticket", "the session expires")} == {LET_IN}
