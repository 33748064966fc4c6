"""Where a broker finds its user and password for ZooKeeper."""

from __future__ import annotations

from random import Random

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.broker.server.zookeeper_store import CREDENTIALS_VARIABLE, SASL_VARIABLE, zookeeper_tree
from barnabas.config_def import InvalidConfig
from barnabas.metadata.zookeeper.access import of_creator
from barnabas.metadata.zookeeper.digest_md5 import SaslUser
from barnabas.metadata.zookeeper.session import ZooKeeperOptions

JAAS = 'org.apache.zookeeper.server.auth.DigestLoginModule required username="broker" password="secret";'


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (SASL_VARIABLE, CREDENTIALS_VARIABLE):
        monkeypatch.delenv(variable, raising=False)


def options(**settings: str) -> ZooKeeperOptions:
    properties = {"zookeeper.connect": "localhost:2181", **{name.replace("_", "."): value for name, value in settings.items()}}
    return zookeeper_tree(BrokerConfig.from_properties(properties), Random(1))._options


def test_the_user_is_in_plain_settings() -> None:
    configured = options(barnabas_zookeeper_sasl_username="broker", barnabas_zookeeper_sasl_password="secret", zookeeper_set_acl="true")
    assert configured.sasl == SaslUser("broker", "secret")
    assert configured.access_of is of_creator
    assert "secret" not in repr(configured)


def test_the_user_is_in_a_jaas_text() -> None:
    assert options(barnabas_zookeeper_sasl_jaas_config=JAAS).sasl == SaslUser("broker", "secret")


def test_the_user_is_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SASL_VARIABLE, "broker:se:cret")
    assert options().sasl == SaslUser("broker", "se:cret")
    assert options(barnabas_zookeeper_sasl_jaas_config=JAAS).sasl == SaslUser("broker", "secret")


def test_without_a_user_nothing_is_proved() -> None:
    assert options().sasl is None


@pytest.mark.parametrize(
    ("settings", "fix"),
    [
        ({"zookeeper_set_acl": "true"}, "set barnabas.zookeeper.sasl.username"),
        ({"barnabas_zookeeper_sasl_username": "broker"}, "must be set together"),
        ({"barnabas_zookeeper_sasl_password": "secret"}, "must be set together"),
        ({"barnabas_zookeeper_sasl_jaas_config": JAAS, "barnabas_zookeeper_sasl_username": "broker"}, "remove one of them"),
        ({"barnabas_zookeeper_sasl_jaas_config": "Module required secret"}, "barnabas.zookeeper.sasl.jaas.config: "),
        ({"barnabas_zookeeper_sasl_jaas_config": 'Module required username="a";'}, "must have the options username and password"),
    ],
)
def test_half_a_user_is_refused_and_the_fix_is_named(settings: dict[str, str], fix: str) -> None:
    with pytest.raises(InvalidConfig, match=fix):
        options(**settings)


def test_an_environment_variable_without_a_password_is_refused_without_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SASL_VARIABLE, "verysecret")
    with pytest.raises(InvalidConfig, match=f"{SASL_VARIABLE} must be user:password") as refused:
        options()
    assert "verysecret" not in str(refused.value)
