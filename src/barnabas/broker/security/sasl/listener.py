"""A listener with SASL: authenticates each connection, gives it its session, and renews sessions that expire (KIP-368)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Final

from barnabas.broker.clock import Clock
from barnabas.broker.security.authentication import peer_certificate
from barnabas.broker.security.principal_builder import AuthenticationContext, PrincipalBuilder
from barnabas.broker.security.sasl.exchange import SaslExchange
from barnabas.broker.security.sasl.mechanism import Mechanism, SaslFailure
from barnabas.broker.security.sasl.steps import Dispatch, Evaluate, Fail, Respond, Step
from barnabas.broker.security.session import RenewableSession, Session
from barnabas.endpoint import SecurityProtocol
from barnabas.network.exchange import Exchange, Peer
from barnabas.security.errors import AuthenticationError, SaslAuthentication
from barnabas.security.principal import KafkaPrincipal

_SASL_HANDSHAKE: Final = b"\x00\x11"  # its API key, as it is in the first two bytes of a frame
_RENEWAL_INTERVAL_MS: Final = 1000  # a client may not begin a re-authentication more often

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SaslConfig:
    """The SASL settings of one listener. `max_reauth_ms` has connections.max.reauth.ms by mechanism; 0: sessions do not expire."""

    security_protocol: SecurityProtocol
    principals: PrincipalBuilder
    mechanisms: Mapping[str, Mechanism]
    max_reauth_ms: Mapping[str, int]
    failure_delay_ms: int  # connection.failed.authentication.delay.ms


class SaslListener:
    """The ListenerAuthentication of a SASL listener. `threads` runs mechanisms that block."""

    def __init__(self, config: SaslConfig, clock: Clock, threads: Executor, call_later: Callable[[float, Callable[[], None]], Any]) -> None:
        self.config = config
        self.successful = 0
        self.failed = 0
        self.renewed = 0  # re-authentications that succeeded; the two above do not count them
        self.renewals_failed = 0
        self.expired = 0  # connections that were closed because their session had expired
        self._clock = clock
        self._threads = threads
        self._call_later = call_later
        self._running: set[asyncio.Task[None]] = set()  # asyncio keeps weak references only

    def admits(self, exchange: Exchange, frame: bytes) -> bool:
        """Whether the dispatcher is to handle the request. If not, it is answered here."""
        connection = exchange.connection
        session = connection.session
        if isinstance(session, RenewableSession):
            if session.renewal is None and not self._is_renewed(session, frame):
                return self._is_alive(session, exchange)
            sasl = session.renewal
        else:
            sasl = session
            if sasl is None:
                sasl = connection.session = SaslExchange(self.config.mechanisms)
        assert isinstance(sasl, SaslExchange)
        exchange.hold_next()  # the next frame may be interpreted only after this one
        return self._carry_out(sasl.receive(frame), sasl, exchange)

    def _is_renewed(self, session: RenewableSession, frame: bytes) -> bool:
        """Begins a re-authentication if the frame is SaslHandshake."""
        monotonic_ms = self._clock.monotonic_ms()
        if frame[:2] != _SASL_HANDSHAKE or monotonic_ms < session.renewable_ms:
            return False
        session.renewable_ms = monotonic_ms + _RENEWAL_INTERVAL_MS
        session.renewal = SaslExchange(self.config.mechanisms, session.mechanism)
        return True

    def _is_alive(self, session: RenewableSession, exchange: Exchange) -> bool:
        if session.expires_ms is None or self._clock.monotonic_ms() <= session.expires_ms:
            return True
        self.expired += 1
        _log.info("Closing connection %s: its session has expired, and the client has not re-authenticated", exchange.connection.id)
        exchange.close_connection()
        return False

    def _carry_out(self, step: Step, sasl: SaslExchange, exchange: Exchange) -> bool:
        if isinstance(step, Dispatch):
            return True
        if isinstance(step, Evaluate):
            if step.blocks:
                task = asyncio.ensure_future(self._evaluate_in_thread(step, sasl, exchange))
                self._running.add(task)
                task.add_done_callback(self._running.discard)
            else:
                self._evaluate(step, sasl, exchange)
        elif isinstance(step, Respond):
            exchange.respond(step.frame)
        else:
            self._fail(step, sasl, exchange)
        return False

    def _evaluate(self, step: Evaluate, sasl: SaslExchange, exchange: Exchange) -> None:
        try:
            challenge = step.mechanism.evaluate(step.token)
        except Exception as error:
            self._reject(step, sasl, exchange, error)
        else:
            self._accept(step, sasl, exchange, challenge)

    async def _evaluate_in_thread(self, step: Evaluate, sasl: SaslExchange, exchange: Exchange) -> None:
        """Takes no place in the queue meanwhile: however many clients authenticate, and however slow the server of a handler is, the
        requests of clients that have authenticated are served. Clients that have disconnected are not evaluated."""
        exchange.leave_queue()
        try:
            challenge = await asyncio.get_running_loop().run_in_executor(self._threads, _evaluated, step, exchange)
        except _Disconnected:
            exchange.close_connection()
        except Exception as error:
            self._reject(step, sasl, exchange, error)
        else:
            self._accept(step, sasl, exchange, challenge)

    def _accept(self, step: Evaluate, sasl: SaslExchange, exchange: Exchange, challenge: bytes) -> None:
        try:
            lifetime_ms = self._complete(step, sasl, exchange.connection) if step.mechanism.is_complete else None
        except Exception as error:
            self._reject(step, sasl, exchange, error)
            return
        exchange.respond(sasl.evaluated(step, challenge, lifetime_ms).frame)

    def _reject(self, step: Evaluate, sasl: SaslExchange, exchange: Exchange, error: Exception) -> None:
        if not isinstance(error, (AuthenticationError, SaslFailure)):
            _log.error("The mechanism %s failed on connection %s: %s", sasl.mechanism, exchange.connection.id, type(error).__name__)
            error = SaslFailure(type(error).__name__)
        self._fail(sasl.rejected(step, error), sasl, exchange)

    def _complete(self, step: Evaluate, sasl: SaslExchange, connection: Peer) -> int | None:
        """Gives the connection its session. Returns its lifetime; None if it does not expire. Raises SaslAuthentication."""
        principal = self._principal(sasl.mechanism, step.mechanism.authorization_id, connection)
        previous = connection.session
        if isinstance(previous, RenewableSession) and previous.principal != principal:
            raise SaslAuthentication(
                f"Cannot change principals during re-authentication from {_dotted(previous.principal)}: {_dotted(principal)}"
            )
        lifetime_ms = self._lifetime_ms(sasl.mechanism, step.mechanism.credential_expires_ms)
        if lifetime_ms is None:
            connection.session = Session(principal, connection.remote_ip, mechanism=sasl.mechanism, is_token=step.mechanism.is_token)
        else:
            connection.session = RenewableSession(
                principal,
                connection.remote_ip,
                mechanism=sasl.mechanism,
                expires_ms=self._clock.monotonic_ms() + lifetime_ms,
                is_token=step.mechanism.is_token,
                renewable_ms=previous.renewable_ms if isinstance(previous, RenewableSession) else 0,
            )
        connection.authenticated()
        if isinstance(previous, RenewableSession):
            self.renewed += 1
        else:
            self.successful += 1
        return lifetime_ms

    def _principal(self, mechanism: str, authorization_id: str, connection: Peer) -> KafkaPrincipal:
        certificate = peer_certificate(connection)
        return self.config.principals.build(
            AuthenticationContext(
                self.config.security_protocol, connection.listener_name, connection.remote_ip, certificate, mechanism, authorization_id
            )
        )

    def _lifetime_ms(self, mechanism: str, credential_expires_ms: int | None) -> int | None:
        bounds = []
        if credential_expires_ms is not None:
            bounds.append(credential_expires_ms - self._clock.now_ms())
        if self.config.max_reauth_ms.get(mechanism, 0) > 0:
            bounds.append(self.config.max_reauth_ms[mechanism])
        return max(0, min(bounds)) if bounds else None

    def _fail(self, step: Fail, sasl: SaslExchange, exchange: Exchange) -> None:
        """Answers after connection.failed.authentication.delay.ms, and closes. Nothing more is read from the client."""
        connection = exchange.connection
        if isinstance(connection.session, RenewableSession):
            self.renewals_failed += 1
        else:
            self.failed += 1
        _log.info("Failed %s with /%s (channelId=%s) (%s)", sasl.kind, connection.remote_ip, connection.id, step.reason)
        exchange.leave_queue()
        delay_ms = self.config.failure_delay_ms
        if delay_ms > 0:
            self._call_later(delay_ms / 1000, lambda: exchange.respond(step.frame, close=True))
        else:
            exchange.respond(step.frame, close=True)


class _Disconnected(Exception):
    """The client has disconnected before its turn came."""


def _evaluated(step: Evaluate, exchange: Exchange) -> bytes:
    """Runs on a thread."""
    if exchange.is_abandoned:
        raise _Disconnected
    return step.mechanism.evaluate(step.token)


def _dotted(principal: KafkaPrincipal) -> str:
    """As Kafka shows it in this text."""
    return f"{principal.principal_type}.{principal.name}"
