"""The SASL listeners of a broker: made from its configuration at the start, and again when a SASL setting changes."""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Coroutine, Iterable
from concurrent.futures import Executor
from random import Random
from typing import Any, Final

from barnabas.broker.clock import Clock
from barnabas.broker.config import BrokerConfig
from barnabas.broker.security.credentials import Credentials
from barnabas.broker.security.principal_builder import principal_builder
from barnabas.broker.security.sasl.listener import SaslConfig, SaslListener
from barnabas.broker.security.sasl.mechanism import Mechanism, MechanismSettings
from barnabas.broker.security.sasl.mechanisms import make_mechanism
from barnabas.config_def import InvalidConfig
from barnabas.endpoint import EndPoint

_SECRET_BYTES: Final = 32
# Parts of the names of settings after whose change the mechanisms are made anew.
_SASL_SETTINGS: Final = ("sasl.", "connections.max.reauth.ms", "principal.builder.class")

_log = logging.getLogger(__name__)


class SaslListeners:
    """`by_name` has the SASL listeners. Must be made on the event loop of the broker; raises InvalidConfig."""

    def __init__(self, config: BrokerConfig, credentials: Credentials, clock: Clock, random: Random, threads: Executor) -> None:
        self._credentials = credentials
        self._clock = clock
        self._random = random
        self._threads = threads
        self._secret = _secret(config) or random.randbytes(_SECRET_BYTES)
        self._config = config
        self._replacing: asyncio.Task[None] | None = None
        self._running: set[asyncio.Task[None]] = set()  # asyncio keeps weak references only
        loop = asyncio.get_running_loop()
        self.by_name = {name: SaslListener(made, clock, threads, loop.call_later) for name, made in self._made(config).items()}

    async def start(self) -> None:
        """Raises InvalidConfig if a mechanism cannot authenticate anybody."""
        await _start(listener.config for listener in self.by_name.values())

    async def close(self) -> None:
        for task in self._running:
            task.cancel()
        await _close(listener.config for listener in self.by_name.values())

    def validate(self, config: BrokerConfig) -> None:
        """Raises InvalidConfig if the listeners could not use a config that a client requests."""
        if self.by_name and _sasl_properties(config) != _sasl_properties(self._config):
            self._in_background(_close(self._made(config).values()))

    def settings_changed(self, config: BrokerConfig, changed: Iterable[str]) -> None:
        """Authentications that begin after the mechanisms have started use the new settings. Sessions stay valid, as in Kafka."""
        if self.by_name and any(map(_is_sasl, changed)):
            self._config = config
            self._replacing = self._in_background(self._replace(config, self._replacing))

    async def _replace(self, config: BrokerConfig, previous: asyncio.Task[None] | None) -> None:
        if previous is not None:
            await asyncio.wait([previous])
        try:
            made = self._made(config)
            await _start(made.values())
        except InvalidConfig as error:
            _log.error("The SASL settings could not be applied, the previous ones stay in effect: %s", error)
            return
        replaced = [self.by_name[name].config for name in made]
        for name, sasl in made.items():
            self.by_name[name].config = sasl
        await _close(replaced)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    def _made(self, config: BrokerConfig) -> dict[str, SaslConfig]:
        return {
            endpoint.listener_name: self._sasl_config(config, endpoint)
            for endpoint in config.broker_listeners
            if endpoint.security_protocol.uses_sasl
        }

    def _sasl_config(self, config: BrokerConfig, endpoint: EndPoint) -> SaslConfig:
        listener_name = endpoint.listener_name
        names: tuple[str, ...] = config.for_listener(listener_name, "sasl.enabled.mechanisms") or ()
        if not names:
            raise InvalidConfig(
                f"Listener {listener_name} uses SASL and sasl.enabled.mechanisms is empty: name a mechanism, as in SCRAM-SHA-512"
            )
        return SaslConfig(
            endpoint.security_protocol,
            principal_builder(config, listener_name),
            {name: self._mechanism(config, listener_name, name) for name in dict.fromkeys(names)},
            {name: config.for_listener(listener_name, "connections.max.reauth.ms", name) for name in names},
            config.number("connection.failed.authentication.delay.ms"),
        )

    def _mechanism(self, config: BrokerConfig, listener_name: str, name: str) -> Mechanism:
        return make_mechanism(
            MechanismSettings(name, listener_name, config, self._credentials, self._clock, self._random, self._threads, self._secret)
        )


def _secret(config: BrokerConfig) -> bytes | None:
    """The same on all brokers and after a restart, so that the challenge of an unknown user stays the same. None if the cluster has no
    secret."""
    for name in ("password.encoder.secret", "delegation.token.secret.key"):
        if text := config.text(name):
            return hmac.digest(text.encode(), b"challenges of unknown SASL users", "sha256")
    return None


def _is_sasl(name: str) -> bool:
    return any(part in name for part in _SASL_SETTINGS)


def _sasl_properties(config: BrokerConfig) -> dict[str, str]:
    return {name: value for name, value in config.properties.items() if _is_sasl(name)}


async def _start(configs: Iterable[SaslConfig]) -> None:
    for config in configs:
        for mechanism in config.mechanisms.values():
            await mechanism.start()


async def _close(configs: Iterable[SaslConfig]) -> None:
    for config in configs:
        for mechanism in config.mechanisms.values():
            await mechanism.close()
