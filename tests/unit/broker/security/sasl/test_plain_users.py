"""Where the users of PLAIN come from."""

from __future__ import annotations

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.broker.security.sasl.plain_users import plain_users
from barnabas.config_def import InvalidConfig

JAAS = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
OURS = "barnabas.sasl.plain.users"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def users(**settings: str) -> dict[str, str]:
    given = {"listeners": "SASL_PLAINTEXT://:0,PLAINTEXT://:0", "sasl.enabled.mechanisms": "PLAIN"} | settings
    return plain_users(BrokerConfig(given), "SASL_PLAINTEXT")


def test_the_users_of_a_jaas_text_are_its_user_options() -> None:
    text = f'{MODULE} required username="me" password="mine" user_alice="secret" user_bob="a,b";'
    assert users(**{JAAS: text}) == {"alice": "secret", "bob": "a,b"}


def test_the_users_of_our_own_setting_need_no_jaas() -> None:
    assert users(**{OURS: r"alice:secret, bob:a\,b:c"}) == {"alice": "secret", "bob": "a,b:c"}


def test_users_of_a_listener_replace_those_of_the_broker() -> None:
    assert users(**{OURS: "alice:secret", f"listener.name.sasl_plaintext.{OURS}": "bob:other"}) == {"bob": "other"}


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "has no users: set listener.name.sasl_plaintext.barnabas.sasl.plain.users"),
        ({"sasl.jaas.config": f'{MODULE} required user_alice="secret";'}, "has no users"),
        ({OURS: ""}, "has no users"),
        ({OURS: "secret"}, "cannot be read at entry 1"),
        ({OURS: "alice:one,alice:secret"}, "cannot be read at entry 2"),
        ({OURS: "alice:"}, "cannot be read at entry 1"),
        ({JAAS: f"{MODULE} required user_alice=secret"}, f"{JAAS} is wrong: JAAS config entry not terminated by semi-colon"),
        ({JAAS: f'{MODULE} user_alice="secret";'}, f"{JAAS} is wrong: Invalid login module control flag"),
        ({JAAS: f'{MODULE} required username="me" password="secret";'}, "has no user"),
        ({JAAS: f'{MODULE} required user_alice="";'}, "or one without a password"),
        ({JAAS: 'org.example.Other required user_alice="secret";'}, f"{JAAS} names the login module org.example.Other"),
        ({JAAS: f'{MODULE} required user_alice="secret";', OURS: "bob:secret"}, "keep them in one of the two"),
    ],
)
def test_a_setting_that_cannot_be_read_is_named_without_its_value(settings: dict[str, str], text: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        users(**settings)
    assert text in str(refused.value)
    assert "secret" not in str(refused.value)
