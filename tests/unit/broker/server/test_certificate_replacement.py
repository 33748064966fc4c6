"""A replaced certificate reaches the listeners and the links to other brokers, by dynamic settings and by the files."""

from __future__ import annotations

import asyncio
import os
import ssl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.config import BrokerConfig, DynamicBrokerConfig
from barnabas.broker.security.tls.listener_certificates import ListenerCertificates
from barnabas.broker.server.certificate_replacement import CertificateReplacement
from barnabas.config_def import InvalidConfig
from tests.unit.security.certificates import authority, key_store

LOCATION = "listener.name.ssl.ssl.keystore.location"


class Scene:
    """A broker of a cluster with one TLS listener."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = self.written("broker.pem", "broker")
        static = BrokerConfig(
            {
                "listeners": "SSL://localhost:0",
                "security.inter.broker.protocol": "SSL",
                "ssl.keystore.location": self.store,
                "ssl.truststore.certificates": authority().own.pem,
                "barnabas.ssl.reload.interval.ms": "1",
            }
        )
        self.config = DynamicBrokerConfig(static)
        self.listening: list[ssl.SSLContext] = []
        self.linking: list[tuple[str, ssl.SSLContext]] = []
        self.changed = asyncio.Event()
        sockets: Any = SimpleNamespace(listeners={"SSL": SimpleNamespace(use_tls=self.listening.append)})
        cluster: Any = SimpleNamespace(use_tls=self._link)
        self.threads = ThreadPoolExecutor(1)
        certificates = ListenerCertificates(static, is_clustered=True)
        self.replacement = CertificateReplacement(self.config, certificates, sockets, cluster, self.threads)
        self.config.validators.append(self.replacement.validate)

    def written(self, name: str, subject: str) -> str:
        new = self.path / "new"
        new.write_text(key_store(subject, "localhost"))
        os.replace(new, self.path / name)
        return str(self.path / name)

    def _link(self, listener_name: str, context: ssl.SSLContext) -> None:
        self.linking.append((listener_name, context))
        self.changed.set()


def test_a_dynamic_setting_reaches_listener_and_links(tmp_path: Path) -> None:
    async def run() -> None:
        scene = Scene(tmp_path)
        properties = {LOCATION: scene.written("second.pem", "broker")}
        scene.config.validate(properties, per_broker=True)
        scene.replacement.settings_changed(scene.config.update_broker(properties))
        assert len(scene.listening) == 1
        ((listener_name, context),) = scene.linking
        assert listener_name == "SSL" and context.check_hostname and context.verify_mode is ssl.CERT_REQUIRED

    asyncio.run(run())


def test_a_setting_that_cannot_be_used_is_refused_in_kafkas_words(tmp_path: Path) -> None:
    async def run() -> None:
        scene = Scene(tmp_path)
        with pytest.raises(InvalidConfig, match=r"Validation of dynamic config update .*Keystore DistinguishedName does not match"):
            scene.config.validate({LOCATION: scene.written("second.pem", "another")}, per_broker=True)
        assert scene.listening == []

    asyncio.run(run())


def test_an_alteration_without_a_change_uses_a_changed_file(tmp_path: Path) -> None:
    async def run() -> None:
        scene = Scene(tmp_path)
        scene.written("broker.pem", "broker")
        scene.config.validate({}, per_broker=True)
        await asyncio.wait_for(scene.changed.wait(), 30)
        assert len(scene.listening) == 1

    asyncio.run(run())


def test_files_are_still_compared_after_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        scene = Scene(tmp_path)
        faults = [RuntimeError("of the library")]
        candidates = ListenerCertificates.candidates

        def fails_once(certificates: ListenerCertificates, config: BrokerConfig) -> Any:
            if faults:
                raise faults.pop()
            return candidates(certificates, config)

        monkeypatch.setattr(ListenerCertificates, "candidates", fails_once)
        scene.replacement.start()
        scene.written("broker.pem", "broker")
        await asyncio.wait_for(scene.changed.wait(), 30)
        await scene.replacement.stop()
        assert not faults

    asyncio.run(run())


def test_a_changed_file_is_noticed(tmp_path: Path) -> None:
    async def run() -> None:
        scene = Scene(tmp_path)
        scene.replacement.start()
        scene.written("broker.pem", "broker")
        await asyncio.wait_for(scene.changed.wait(), 30)
        await scene.replacement.stop()
        assert len(scene.listening) == 1

    asyncio.run(run())
