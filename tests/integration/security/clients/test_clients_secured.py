"""Every client over SASL_SSL, with every mechanism that it has: it is let in, or gets the error that it gets from Apache Kafka 4.2.

tests/data/secured-clients-4.2.0.json is what the clients get from Apache Kafka; `make secured-clients` writes it anew.
"""

from __future__ import annotations

import json
from functools import partial

import pytest

from tests.integration.security.clients.peers import MECHANISMS, SCRAM
from tests.integration.security.clients.play import CLIENTS, LET_IN, Outcomes, scenarios_of
from tests.integration.security.clients.record import outcomes_now, recorded
from tests.once import once

pytestmark = pytest.mark.java


@pytest.fixture(scope="session")
def outcomes(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Outcomes:
    play = partial(outcomes_now, "barnabas", tmp_path_factory.mktemp("secured"))
    made: Outcomes = json.loads(once(tmp_path_factory, worker_id, "secured-clients.json", play))
    return made


@pytest.mark.parametrize(("client", "scenario"), [(client, scenario) for client in CLIENTS for scenario in scenarios_of(client)])
def test_a_client_gets_what_it_gets_from_apache_kafka(client: str, scenario: str, outcomes: Outcomes) -> None:
    assert outcomes[client][scenario] == recorded()[client][scenario]


@pytest.mark.parametrize("client", CLIENTS)
def test_every_mechanism_that_a_client_has_lets_it_in(client: str) -> None:
    """But for SCRAM and the librdkafka of kcat: before 2.6.1 it repeats its nonce in the last message, which Apache Kafka refuses, too."""
    mechanisms = [name for name in MECHANISMS if name in scenarios_of(client) and not (client == "kcat" and name in SCRAM)]
    assert mechanisms and {recorded()[client][name] for name in mechanisms} == {LET_IN}
