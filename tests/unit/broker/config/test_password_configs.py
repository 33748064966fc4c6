"""Dynamic passwords of a broker, in the metadata store and in its memory."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from barnabas.broker.config.alterations.alter import Operation
from barnabas.broker.config.alterations.config_alterations import Alteration, AlterationOutcome
from barnabas.config_def import ConfigResourceType
from barnabas.security.password_encoder import PasswordEncoder
from tests.unit.broker.config_broker import ConfigBroker

PASSWORD = "listener.name.plaintext.ssl.key.password"
SET, DELETE = 0, 1


def properties(directory: Path, **settings: str) -> dict[str, str]:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return {"broker.id": "1", "log.dirs": str(directory), **named}


def alter(broker: ConfigBroker, *operations: Operation, validate_only: bool = False) -> AlterationOutcome:
    alteration = Alteration(int(ConfigResourceType.BROKER), "1", operations)
    outcome: AlterationOutcome = broker.run(broker.manager.alter([alteration], validate_only))[0]
    return outcome


def stored(broker: ConfigBroker) -> dict[str, str]:
    configs: dict[str, str] = broker.run(broker.admin.fetch_config("brokers", "1"))
    return configs


def test_a_password_is_encrypted_in_the_tree_and_hidden_everywhere_else(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with ConfigBroker(tmp_path, properties(tmp_path, password_encoder_secret="the-secret")) as broker:
        assert alter(broker, Operation(PASSWORD, SET, "geheim")) == AlterationOutcome()
        assert broker.config.current.properties[PASSWORD] == "geheim"
        text = stored(broker)[PASSWORD]
        assert PasswordEncoder("the-secret").decode(text) == "geheim"
        described = broker.run(broker.manager.describe(ConfigResourceType.BROKER, "1", None))
        for shown in (text, caplog.text, repr(described), repr(broker.config.current)):
            assert "geheim" not in shown
            assert "the-secret" not in shown


def test_a_password_that_has_not_changed_keeps_its_text(tmp_path: Path) -> None:
    with ConfigBroker(tmp_path, properties(tmp_path, password_encoder_secret="the-secret")) as broker:
        alter(broker, Operation(PASSWORD, SET, "geheim"))
        before = stored(broker)[PASSWORD]
        alter(broker, Operation("max.connections", SET, "7"))
        assert stored(broker) == {PASSWORD: before, "max.connections": "7"}
        alter(broker, Operation(PASSWORD, DELETE, None))
        assert stored(broker) == {"max.connections": "7"}


def test_without_the_secret_a_password_is_refused_when_it_would_be_written(tmp_path: Path) -> None:
    with ConfigBroker(tmp_path, properties(tmp_path)) as broker:
        refused = alter(broker, Operation(PASSWORD, SET, "geheim"))
        text = "Invalid config value for resource ConfigResource(type=BROKER, name='1'): Password encoder secret not configured"
        assert refused == AlterationOutcome(42, text)
        assert alter(broker, Operation(PASSWORD, SET, "geheim"), validate_only=True) == AlterationOutcome()
        assert stored(broker) == {}


def test_a_password_encoded_with_another_secret_is_ignored_and_can_be_replaced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = PasswordEncoder("another").encode("geheim")
    with ConfigBroker(tmp_path, properties(tmp_path, password_encoder_secret="the-secret")) as broker:
        broker.run(broker.admin.change_broker_config(1, {PASSWORD: text}))
        broker.run(broker.manager.process_changes())
        assert PASSWORD not in broker.config.current.properties
        assert f"The dynamic config {PASSWORD} is ignored: Password could not be decoded" in caplog.text
        assert text not in caplog.text
        alter(broker, Operation("max.connections", SET, "7"))
        assert stored(broker)[PASSWORD] == text
        alter(broker, Operation(PASSWORD, SET, "new"))
        assert PasswordEncoder("the-secret").decode(stored(broker)[PASSWORD]) == "new"


def test_a_changed_secret_encodes_the_passwords_anew(tmp_path: Path) -> None:
    settings = properties(tmp_path, password_encoder_secret="new-secret", password_encoder_old_secret="old-secret")
    with ConfigBroker(tmp_path, settings) as broker:
        broker.run(broker.manager.close())
        broker.run(broker.admin.change_broker_config(1, {PASSWORD: PasswordEncoder("old-secret").encode("geheim"), "max.connections": "7"}))
        broker.run(broker.start_manager())
        assert broker.config.current.properties[PASSWORD] == "geheim"
        text = stored(broker)[PASSWORD]
        assert PasswordEncoder("new-secret").decode(text) == "geheim"
        broker.run(broker.manager.close())
        broker.run(broker.start_manager())
        assert stored(broker) == {PASSWORD: text, "max.connections": "7"}
