"""One session with an ensemble, over as many connections as necessary: the part of ZooKeeper's client that Kafka needs.

Requests are sent in order, several at a time, and answered in order. When a connection is lost the session connects to the next server,
registers its watches there, and sends all unanswered requests again, as Kafka's client does: a repeated write may find that it was already
applied. Only a server can expire a session; until then requests wait. Everything runs on one event loop.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Final

from barnabas.metadata.errors import AuthFailed, SessionExpired, StoreUnusable, TreeError
from barnabas.metadata.session_metrics import SessionMetrics
from barnabas.metadata.tree import EventType, R_co, TreeRequest, TreeResponse, WatchedEvent, Watcher
from barnabas.metadata.zookeeper import wire
from barnabas.metadata.zookeeper.access import AccessOf, open_to_all
from barnabas.metadata.zookeeper.address import Ensemble, Server
from barnabas.metadata.zookeeper.digest_md5 import DigestMd5, SaslRefused, SaslUser
from barnabas.metadata.zookeeper.link import ZooKeeperLink
from barnabas.metadata.zookeeper.pending import PendingBatch, PendingRequest
from barnabas.metadata.zookeeper.watch_list import WatchList

log = logging.getLogger(__name__)

PASSWORD_BYTES: Final = 16
ROUND_PAUSE_S_MAX: Final = 1.0  # after no server of the ensemble was reachable
CLOSE_TIMEOUT_S: Final = 2.0
XID_MAX: Final = 2**31 - 1
CREDENTIALS_HELP: Final = "Correct barnabas.zookeeper.sasl.username and .password, or the environment variable that has them"


class SessionState(Enum):
    """A session starts CONNECTING and alternates between that and CONNECTED; the other states are final."""

    CONNECTING = "connecting"
    CONNECTED = "connected"
    EXPIRED = "expired"
    REFUSED = "refused"  # its credentials are wrong
    CLOSED = "closed"

    @property
    def is_alive(self) -> bool:
        return self in (SessionState.CONNECTING, SessionState.CONNECTED)


@dataclass(frozen=True)
class ZooKeeperOptions:
    """The `zookeeper.*` settings."""

    ensemble: Ensemble
    session_timeout_ms: int = 18_000
    connection_timeout_ms: int = 18_000
    in_flight_max: int = 10
    access_of: AccessOf = open_to_all
    credentials: Sequence[tuple[str, bytes]] = field(default=(), repr=False)  # by scheme: ("digest", b"user:password")
    sasl: SaslUser | None = None
    tls: Callable[[], ssl.SSLContext] | None = None  # called for each connection: certificates may have been replaced
    random: Random = field(default_factory=Random)


class ZooKeeperSession:
    """Must be opened before use, and closed; it cannot be opened twice."""

    def __init__(self, options: ZooKeeperOptions, watcher: Watcher, metrics: SessionMetrics | None = None) -> None:
        self.state = SessionState.CONNECTING
        self._metrics = metrics or SessionMetrics()
        self._options = options
        self._watcher = watcher
        self._servers = options.random.sample(options.ensemble.servers, len(options.ensemble.servers))
        self._session_id = 0
        self._password = bytes(PASSWORD_BYTES)
        self._timeout_s = options.session_timeout_ms / 1000
        self._last_zxid = 0
        self._xid = 0
        self._watches = WatchList()
        self._waiting: deque[PendingRequest] = deque()
        self._sent: deque[PendingRequest] = deque()
        self._link: ZooKeeperLink | None = None
        self._opened: asyncio.Future[None] | None = None
        self._exchange: DigestMd5 | None = None  # while it is under way, nothing else is sent
        self._exchange_xid = 0
        self._unproven = 0  # credentials that the server has not accepted yet
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._last_failure: BaseException | None = None
        self._is_closing = False

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def is_alive(self) -> bool:
        return self.state.is_alive

    async def open(self) -> None:
        """Raises StoreUnusable with a text that names the fix, if no server is reachable in time or the credentials are rejected."""
        loop = asyncio.get_running_loop()
        self._opened = loop.create_future()
        self._task = loop.create_task(self._live())
        limit_ms = self._options.connection_timeout_ms
        try:
            await asyncio.wait_for(asyncio.shield(self._opened), limit_ms / 1000)
        except TimeoutError:
            await self.close()
            raise StoreUnusable(
                f"No ZooKeeper server of {self._options.ensemble} answered within {limit_ms} ms: {self._last_failure}. "
                "Start ZooKeeper, or correct zookeeper.connect"
            ) from None
        except BaseException:
            await self.close()
            raise

    async def handle(self, requests: Sequence[TreeRequest[R_co]]) -> list[TreeResponse[R_co]]:
        """Waits while there is no connection: the responses arrive, or the session ends."""
        if not requests:
            return []
        if not self.is_alive:
            return [TreeResponse(request, None, self._end_error()) for request in requests]
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        batch = PendingBatch(requests, done)
        self._waiting.extend(PendingRequest(request, batch, index) for index, request in enumerate(requests))
        self._send_waiting()
        await done
        return batch.responses

    async def close(self) -> None:
        """Ends the session at the server, which deletes the ephemeral nodes at once; without a connection they expire by timeout."""
        self._is_closing = True
        if self.state is SessionState.CONNECTED and self._link is not None:
            link = self._link
            link.send(wire.close(self._next_xid()))
            await asyncio.wait({link.ended}, timeout=CLOSE_TIMEOUT_S)
        self._end(SessionState.CLOSED)
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
            await asyncio.wait({self._task})

    def abandon(self) -> None:
        """Ends the session on this side only. Requests that wait fail."""
        self._is_closing = True
        self._end(SessionState.CLOSED)

    # One connection after the other

    async def _live(self) -> None:
        tried = 0
        while self.is_alive and not self._is_closing:
            server = self._servers[tried % len(self._servers)]
            tried += 1
            try:
                await self._connect_to(server)
            except (OSError, TimeoutError, wire.Malformed) as error:
                self._last_failure = error
                log.debug("ZooKeeper server %s cannot be reached: %s", server, error)
            if self.is_alive and tried % len(self._servers) == 0:
                await asyncio.sleep(self._options.random.random() * ROUND_PAUSE_S_MAX)

    async def _connect_to(self, server: Server) -> None:
        """Runs until the connection is lost. A server gets its share of the session timeout to respond, so that others can be tried."""
        limit_s = max(self._timeout_s / len(self._servers), 0.5)
        tls = None if self._options.tls is None else self._options.tls()
        link = await asyncio.wait_for(ZooKeeperLink.open(server, self._on_frame, tls), limit_s)
        try:
            link.send(wire.connect(self._last_zxid, self._options.session_timeout_ms, self._session_id, self._password))
            self._timer = asyncio.get_running_loop().call_later(limit_s, link.end, TimeoutError(f"{server} did not answer in time"))
            failure = await asyncio.shield(link.ended)
        finally:
            link.end()
            self._lost(link)
        self._last_failure = failure or ConnectionResetError(f"{server} closed the connection")
        if self.is_alive and not self._is_closing:
            log.warning("The connection to ZooKeeper server %s was lost: %s", server, self._last_failure)

    def _lost(self, link: ZooKeeperLink) -> None:
        """Requests that were sent and not answered are sent again, before those that wait."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._link is link:
            self._link = self._exchange = None
            self._metrics.disconnects += 1
            if self.is_alive:
                self.state = SessionState.CONNECTING
        self._waiting.extendleft(reversed(self._sent))
        self._sent.clear()

    def _on_frame(self, link: ZooKeeperLink, frame: bytes) -> None:
        if not self.is_alive:
            return
        if self._link is None:
            self._connected(link, wire.handshake(frame))
        else:
            self._answered(link, wire.reply(frame))

    def _connected(self, link: ZooKeeperLink, handshake: wire.ConnectResponse) -> None:
        if handshake.timeout_ms <= 0:
            self._expire()
            link.end()
            return
        if self._timer is not None:
            self._timer.cancel()
        log.info("Session 0x%x with ZooKeeper server %s, timeout %d ms", handshake.session_id, link.server, handshake.timeout_ms)
        self._session_id, self._password = handshake.session_id, handshake.password
        self._timeout_s = handshake.timeout_ms / 1000
        self._link = link
        self.state = SessionState.CONNECTED
        self._metrics.connects += 1
        self._keep_alive(link)
        if self._options.sasl is None:
            self._begin(link)
        else:
            self._exchange = DigestMd5(self._options.sasl)
            self._send_token(link, b"")

    def _send_token(self, link: ZooKeeperLink, token: bytes) -> None:
        self._exchange_xid = self._next_xid()
        link.send(wire.sasl(self._exchange_xid, token))

    def _continue_exchange(self, link: ZooKeeperLink, exchange: DigestMd5, reply: wire.ReplyHeader) -> None:
        try:
            if reply.error:
                raise SaslRefused("user or password is wrong, or the server has no such user")
            token = exchange.answer(reply.body.buffer())
        except SaslRefused as refusal:
            self._refuse_sasl(link, refusal)
            return
        if token is not None:
            self._send_token(link, token)
        else:
            self._exchange = None
            self._metrics.sasl_authentications += 1
            self._begin(link)

    def _refuse_sasl(self, link: ZooKeeperLink, refusal: SaslRefused) -> None:
        """A session that was authenticated before tries again: a server may have been restarted with other users by mistake."""
        if self._opened is not None and self._opened.done():
            link.end(refusal)
        else:
            self._refuse(str(refusal))

    def _begin(self, link: ZooKeeperLink) -> None:
        """Sends what a new connection begins with, and the requests that wait."""
        first = [wire.auth(scheme, credentials) for scheme, credentials in self._options.credentials]
        first += [wire.set_watches(self._last_zxid, *lists) for lists in self._watches.in_portions(self._options.ensemble.chroot)]
        if first:
            link.send(b"".join(first))
        self._send_waiting()
        self._unproven = len(self._options.credentials)
        self._maybe_opened()

    def _maybe_opened(self) -> None:
        if self._unproven == 0 and self._opened is not None and not self._opened.done():
            self._opened.set_result(None)

    def _keep_alive(self, link: ZooKeeperLink) -> None:
        """Pings while nothing else is sent, and closes the connection to a server that is silent for two thirds of the timeout: that leaves
        time to find another."""
        if self._link is not link:
            return
        loop = asyncio.get_running_loop()
        silence_max_s = self._timeout_s * 2 / 3
        if loop.time() - link.received_at > silence_max_s:
            link.end(TimeoutError(f"{link.server} was silent for {silence_max_s:.1f} s"))
            return
        if loop.time() - link.sent_at >= silence_max_s / 4:
            link.send(wire.ping())
        self._timer = loop.call_later(silence_max_s / 4, self._keep_alive, link)

    # Requests and responses

    def _send_waiting(self) -> None:
        link = self._link
        if link is None or self._exchange is not None:
            return
        frames: list[bytes] = []
        while self._waiting and len(self._sent) < self._options.in_flight_max:
            pending = self._waiting.popleft()
            pending.xid = self._next_xid()
            try:
                frames.append(wire.request(pending.xid, pending.request, self._options.ensemble.chroot, self._options.access_of))
            except TreeError as error:
                pending.batch.answer(pending.index, TreeResponse(pending.request, None, error))
                continue
            self._sent.append(pending)
        if frames:
            link.send(b"".join(frames))

    def _answered(self, link: ZooKeeperLink, reply: wire.ReplyHeader) -> None:
        if reply.xid == wire.NOTIFICATION_XID:
            self._notify(wire.event(reply.body, self._options.ensemble.chroot))
        elif reply.xid == wire.AUTH_XID:
            if reply.error:
                self._refuse()
            else:
                self._unproven -= 1
                self._maybe_opened()
        elif self._exchange is not None and reply.xid == self._exchange_xid:
            self._continue_exchange(link, self._exchange, reply)
        elif reply.xid >= 0:
            self._settle(reply)

    def _settle(self, reply: wire.ReplyHeader) -> None:
        if not self._sent:
            return  # the reply to `close`
        pending = self._sent.popleft()
        if pending.xid != reply.xid:
            self._sent.appendleft(pending)
            raise wire.Malformed(f"An answer to request {reply.xid} instead of {pending.xid}")
        if reply.zxid > 0:
            self._last_zxid = max(self._last_zxid, reply.zxid)
        result, error = None, None
        try:
            result = wire.result(pending.request, reply, self._options.ensemble.chroot)
        except TreeError as failure:
            error = failure
        self._watches.note_response(pending.request, error is None and result is not None)
        pending.batch.answer(pending.index, TreeResponse(pending.request, result, error))
        self._send_waiting()

    def _notify(self, event: WatchedEvent | None) -> None:
        if event is None:
            return
        self._watches.remove_triggered(event)
        self._deliver(event)

    def _deliver(self, event: WatchedEvent) -> None:
        try:
            self._watcher(event)
        except Exception:
            log.exception("The watcher of session 0x%x failed on %s %s", self._session_id, event.type.value, event.path)

    def _next_xid(self) -> int:
        self._xid = 1 if self._xid == XID_MAX else self._xid + 1
        return self._xid

    # The end of the session

    def _expire(self) -> None:
        log.warning("Session 0x%x with ZooKeeper has expired", self._session_id)
        self._metrics.expirations += 1
        self._end(SessionState.EXPIRED)
        self._deliver(WatchedEvent(EventType.SESSION_EXPIRED, ""))

    def _refuse(self, reason: str = "user or password is wrong") -> None:
        text = f"ZooKeeper at {self._options.ensemble} refused the credentials of this broker: {reason}"
        log.error("%s. No request will be answered any more", text)
        self._metrics.auth_failures += 1
        self._end(SessionState.REFUSED)
        if self._opened is not None and not self._opened.done():
            self._opened.set_exception(StoreUnusable(f"{text}. {CREDENTIALS_HELP}"))

    def _end(self, state: SessionState) -> None:
        if not self.is_alive:
            return
        self.state = state
        for pending in (*self._sent, *self._waiting):
            pending.batch.answer(pending.index, TreeResponse(pending.request, None, self._end_error()))
        self._sent.clear()
        self._waiting.clear()
        if self._link is not None:
            self._link.end()

    def _end_error(self) -> TreeError:
        return AuthFailed("/") if self.state is SessionState.REFUSED else SessionExpired("/")
