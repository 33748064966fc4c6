"""Certificates that are replaced while the broker runs: what may replace what, and what happens if it may not."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.broker.security.tls.listener_certificates import ListenerCertificates
from barnabas.config_def import InvalidConfig
from tests.unit.security.certificates import authority, key_store

LISTENER = {"listeners": "EXTERNAL://:0", "listener.security.protocol.map": "EXTERNAL:SSL", "inter.broker.listener.name": "EXTERNAL"}


class Scene:
    """A listener whose key store is the file `path`."""

    def __init__(self, path: Path, is_clustered: bool = False, **settings: str) -> None:
        self.path = path
        self.write(key_store("broker", "localhost"))
        self.properties = LISTENER | {"ssl.keystore.location": str(path), "ssl.truststore.certificates": authority().own.pem}
        self.properties |= {name.replace("_", "."): text for name, text in settings.items()}
        self.config = BrokerConfig(self.properties)
        self.certificates = ListenerCertificates(self.config, is_clustered)
        self.replaced: list[str] = []
        self.certificates.on_change.append(lambda name, tls: self.replaced.append(name))

    def write(self, text: str) -> None:
        new = self.path.with_suffix(".new")
        new.write_text(text)
        os.replace(new, self.path)

    def check(self) -> None:
        self.certificates.use(self.certificates.candidates(self.config))

    def with_store(self, text: str) -> BrokerConfig:
        other = self.path.with_suffix(".other")
        other.write_text(text)
        return BrokerConfig(self.properties | {"listener.name.external.ssl.keystore.location": str(other)})


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "broker.pem")


def test_unchanged_files_are_not_loaded_again(scene: Scene) -> None:
    before = scene.certificates.contexts
    scene.check()
    assert scene.replaced == []
    assert scene.certificates.contexts == before


def test_new_content_of_a_file_is_used(scene: Scene) -> None:
    before = scene.certificates.contexts["EXTERNAL"]
    scene.write(key_store("broker", "localhost"))
    scene.check()
    assert scene.replaced == ["EXTERNAL"]
    assert scene.certificates.contexts["EXTERNAL"] is not before
    scene.check()
    assert scene.replaced == ["EXTERNAL"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("half a file", "not a PKCS12 store"),
        (key_store("another", "localhost"), r"DistinguishedName does not match.*CN=broker.*CN=another"),
        (key_store("broker", "elsewhere"), r"SubjectAltNames do not match.*localhost"),
    ],
)
def test_what_cannot_be_used_gets_one_warning_and_the_old_stays(
    scene: Scene, text: str, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = scene.certificates.contexts
    scene.config = BrokerConfig(scene.properties | {"ssl.keystore.password": "secret"})
    scene.write(text)
    with caplog.at_level(logging.WARNING):
        scene.check()
        scene.check()
    (record,) = caplog.records
    assert re.search(f"previous one stays in use: .*{says}", record.getMessage())
    assert scene.certificates.contexts == before
    scene.write(key_store("broker", "localhost"))
    scene.check()
    assert scene.replaced == ["EXTERNAL"]


def test_a_missing_file_changes_nothing_but_a_warning(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.path.unlink()
    scene.check()
    assert "cannot be read: No such file" in caplog.text
    assert scene.replaced == []


def test_names_may_change_if_the_settings_say_so(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "broker.pem", ssl_allow_dn_changes="true", ssl_allow_san_changes="true")
    scene.write(key_store("another", "elsewhere"))
    scene.check()
    assert scene.replaced == ["EXTERNAL"]


def test_more_alternative_names_are_always_allowed(scene: Scene) -> None:
    scene.certificates.validate(scene.with_store(key_store("broker", "localhost", "more")))


def test_a_dynamic_setting_is_validated_before_it_is_written(scene: Scene) -> None:
    with pytest.raises(InvalidConfig, match="DistinguishedName does not match"):
        scene.certificates.validate(scene.with_store(key_store("another", "localhost")))
    with pytest.raises(InvalidConfig, match="cannot be read"):
        scene.certificates.validate(BrokerConfig(scene.properties | {"listener.name.external.ssl.keystore.location": "/missing"}))
    assert scene.replaced == []


def test_brokers_must_trust_the_new_certificate(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "broker.pem", is_clustered=True)
    with pytest.raises(InvalidConfig, match=r"can't connect to a server.*ssl\.truststore"):
        scene.certificates.validate(scene.with_store(key_store("broker", "localhost", ca="another CA")))
    scene.certificates.validate(scene.with_store(key_store("broker", "localhost")))


def test_a_trust_store_cannot_be_added(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "broker.pem", ssl_truststore_certificates="")
    with pytest.raises(InvalidConfig, match="Cannot add SSL truststore"):
        scene.certificates.validate(BrokerConfig(scene.properties | {"ssl.truststore.certificates": authority().own.pem}))
