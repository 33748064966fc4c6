"""The SASL listeners of a broker, made from its configuration at the start. Their settings change with a restart only, as in Kafka."""

from __future__ import annotations

import asyncio
import hmac
import logging
from concurrent.futures import Executor
from random import Random
from typing import Final

from barnabas.broker.clock import Clock
from barnabas.broker.config import BrokerConfig
from barnabas.broker.security.credentials import Credentials
from barnabas.broker.security.principal_builder import principal_builder
from barnabas.broker.security.sasl.exchange import GSSAPI
from barnabas.broker.security.sasl.listener import SaslConfig, SaslListener
from barnabas.broker.security.sasl.mechanism import Mechanism, MechanismSettings
from barnabas.broker.security.sasl.mechanisms import make_mechanism
from barnabas.config_def import InvalidConfig
from barnabas.endpoint import EndPoint
from barnabas.security.scram import HASHES

_SECRET_BYTES: Final = 32

_log = logging.getLogger(__name__)


class SaslListeners:
    """`by_name` has the SASL listeners. Must be made on the event loop of the broker; raises InvalidConfig."""

    def __init__(self, config: BrokerConfig, credentials: Credentials, clock: Clock, random: Random, threads: Executor) -> None:
        self._credentials = credentials
        self._clock = clock
        self._random = random
        self._threads = threads
        self._secret = _secret(config) or random.randbytes(_SECRET_BYTES)
        loop = asyncio.get_running_loop()
        self.by_name = {
            endpoint.listener_name: SaslListener(self._sasl_config(config, endpoint), clock, threads, loop.call_later)
            for endpoint in config.broker_listeners
            if endpoint.security_protocol.uses_sasl
        }

    async def start(self) -> None:
        """Called when the credentials are read. Raises InvalidConfig if a mechanism cannot authenticate anybody."""
        for mechanism in self._mechanisms():
            await mechanism.start()
        for name, listener in self.by_name.items():
            mechanisms = listener.config.mechanisms
            if not any(self._has_users(*mechanism) for mechanism in mechanisms.items()):
                _log.warning(
                    "Nobody can authenticate on listener %s: there is no user of %s yet. Make the first one at a start, with "
                    "--add-scram '%s=[name=admin,password=…]', or by another listener",
                    name,
                    " or ".join(mechanisms),
                    next(iter(mechanisms)),
                )

    async def close(self) -> None:
        for mechanism in self._mechanisms():
            await mechanism.close()

    def _mechanisms(self) -> list[Mechanism]:
        return [mechanism for listener in self.by_name.values() for mechanism in listener.config.mechanisms.values()]

    def _has_users(self, name: str, mechanism: Mechanism) -> bool:
        """False for SCRAM without a user in the metadata store; the other mechanisms do not start without."""
        return name not in HASHES or mechanism.blocks or self._credentials.example(name) is not None

    def _sasl_config(self, config: BrokerConfig, endpoint: EndPoint) -> SaslConfig:
        listener_name = endpoint.listener_name
        names: tuple[str, ...] = config.for_listener(listener_name, "sasl.enabled.mechanisms") or ()
        if not names:
            raise InvalidConfig(
                f"Listener {listener_name} uses SASL and sasl.enabled.mechanisms is empty: name a mechanism, as in SCRAM-SHA-512"
            )
        return SaslConfig(
            endpoint.security_protocol,
            principal_builder(config, listener_name, GSSAPI in names),
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
