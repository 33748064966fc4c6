"""A campaign: a console and a broker in this process, requests over sockets, and what is found."""

from __future__ import annotations

import gc
import logging
import re
import select
import socket
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final
from unittest import mock

from barnabas.client import Admin, Consumer, Producer
from barnabas.client.admin import ClientQuotaAlteration, ClientQuotaFilter, NewTopic
from barnabas.console.config import ClusterConfig, ConsoleConfig
from barnabas.console.messages.masks import parse_masks
from barnabas.console.web import login
from barnabas.console.web.routes import Route
from barnabas.testing import EmbeddedBroker, broker
from tests.console_server import served
from tests.fuzz.console.requests import FuzzedRequest, Requests, Visitor
from tests.fuzz.console.values import INJECTED, MARKER

ANSWER_S: Final = 60
LOOK_AGAIN: Final = 200  # requests after which deleted topics are made again
SLOW_S: Final = 5  # a request that takes longer is told
READ_MAX: Final = 8 << 20
EVENT_S: Final = 0.3
LEAVES_S: Final = 0.05
TOPICS: Final = {"orders": 3, "payments": 1, "dead-orders": 1}
LOGGERS: Final = ("barnabas.console", "uvicorn", "asyncio", "starlette")
BROKER: Final = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
}
# Statuses of 500 and more that say something: not offered, too many, not in time.
MEANT: Final = (501, 503, 504)


@dataclass
class Report:
    statuses: Counter[int] = field(default_factory=Counter)
    routes: set[str] = field(default_factory=set)
    findings: list[str] = field(default_factory=list)
    requests: int = 0
    slowest: tuple[float, str] = (0.0, "")


class _Log(logging.Handler):
    """Lines of the console's log with an exception, and errors."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith(LOGGERS) and (record.exc_info or record.levelno >= logging.ERROR):
            self.lines.append(self.format(record))


def run(seed: int, numbers: Iterable[int], say: Callable[[str], None] = lambda line: None) -> Report:
    """Sends the requests of these numbers."""
    report = Report()
    with _scene() as (kafka, address, log):
        requests = Requests(_routes(), Visitor(f"localhost:{address[1]}"))
        _visit(address, requests)
        for number in numbers:
            if report.requests % LOOK_AGAIN == 0:
                _furnish(kafka)
            request = requests.make(seed, number)
            _loudly()
            began = time.monotonic()
            found, status, page = _exchange(address, request)
            took_s = time.monotonic() - began
            if took_s > report.slowest[0]:
                report.slowest = (took_s, f"request {number}: {request}")
            if took_s > SLOW_S:
                say(f"request {number} took {took_s:.1f} s, status {status}: {request}")
            report.requests += 1
            report.statuses[status] += 1
            report.routes.add(request.route)
            if log.lines:
                found += log.lines
                log.lines = []
            for finding in found:
                report.findings.append(f"request {number}: {finding}\n  {request}")
                say(f"FOUND {report.findings[-1]}")
            if status == 303 and "/quotas" in request.route:
                _without_quotas(kafka)
            requests.learn(page)
            if report.requests % 5_000 == 0:
                say(f"{report.requests:,} requests, {len(report.findings)} findings, statuses {dict(sorted(report.statuses.items()))}")
        gc.collect()  # tasks whose exception nobody took say so
    report.findings += [f"at the end: {line}" for line in log.lines]
    return report


@contextmanager
def _scene() -> Generator[tuple[EmbeddedBroker, tuple[str, int], _Log], None, None]:
    log = _Log()
    root = logging.getLogger()
    levels = {name: one.level for name, one in root.manager.loggerDict.items() if isinstance(one, logging.Logger)}
    root.addHandler(log)
    try:
        with broker(config=BROKER) as kafka, mock.patch.object(login, "VERIFY_TIMEOUT_MS", 100):
            _furnish(kafka)
            with served(_config(kafka)) as address:
                yield kafka, address, log
    finally:
        root.removeHandler(log)
        for name, one in root.manager.loggerDict.items():  # the broker's loggers are those of this process
            if isinstance(one, logging.Logger):
                one.setLevel(levels.get(name, logging.NOTSET))


def _config(kafka: EmbeddedBroker) -> ConsoleConfig:
    first = ClusterConfig("first", {"bootstrap.servers": kafka.bootstrap_servers}, registry={"schema.registry.url": "http://127.0.0.1:1"})
    secured = {"bootstrap.servers": "127.0.0.1:1", "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    masks = parse_masks([{"mask": "$.card", "topic": "payments"}])
    return ConsoleConfig((first, ClusterConfig("second", secured)), may_write=True, masks=masks)


def _routes() -> tuple[Route, ...]:
    from barnabas.console.app import make_app

    routes = make_app(ConsoleConfig((ClusterConfig("none", {"bootstrap.servers": "127.0.0.1:1"}),))).state.routes
    return tuple(routes)


def _furnish(kafka: EmbeddedBroker) -> None:
    """Topics with records, a group and a transactional id: those that are not there any more are made again."""
    with Admin(kafka.client_config) as admin:
        missing = TOPICS.keys() - set(admin.list_topics())
        for name in missing:
            admin.create_topics([NewTopic(name, TOPICS[name], 1)]).all()
    if not missing:
        return
    with Producer(kafka.client_config) as producer:
        for number in range(30):
            producer.send("orders", key=b"%d" % number, value=b'{"a": %d, "b": "%s"}' % (number, MARKER.encode()), partition=number % 3)
            producer.send("payments", value=(b"\0\0\0\0\1\2" * number, b"\xff\xfe\x80", b"", b'{"card": 1}')[number % 4])
            headers = [("__barnabas.errors.topic", b"orders"), ("__barnabas.errors.reason", MARKER.encode()), (MARKER, None)]
            producer.send("dead-orders", value=b"x", headers=headers)
        producer.flush()
    with Consumer({**kafka.client_config, "group.id": "readers", "auto.offset.reset": "earliest"}) as consumer:
        consumer.subscribe(["orders"])
        while not consumer.poll(1.0):
            pass
        consumer.commit_sync()


def _without_quotas(kafka: EmbeddedBroker) -> None:
    with Admin(kafka.client_config) as admin:
        known = admin.describe_client_quotas(ClientQuotaFilter.all())
        admin.alter_client_quotas([ClientQuotaAlteration(entity, dict.fromkeys(values)) for entity, values in known.items()])


def _loudly() -> None:
    """A page of the console can silence loggers."""
    logging.disable(logging.NOTSET)
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.INFO)
        logging.getLogger(name).disabled = False


def _visit(address: tuple[str, int], requests: Requests) -> None:
    """Takes the cookie and the token of a visitor."""
    request = FuzzedRequest("GET /", "GET", b"/", ((b"host", requests.visitor.host.encode()), (b"connection", b"close")), b"")
    head, page = _answer(address, request)
    cookie = re.search(rb"set-cookie: ([^;]+)", head)
    token = re.search(r"X-CSRF-Token&#34;: &#34;([0-9a-f]+)", page.decode())
    assert cookie is not None and token is not None, (head, page[:2_000])
    requests.visitor.cookie, requests.visitor.token = cookie[1].decode(), token[1]


def _exchange(address: tuple[str, int], request: FuzzedRequest) -> tuple[list[str], int, str]:
    """What is wrong with the response, its status, and the page. Status 0: the connection was closed."""
    try:
        head, body = _answer(address, request)
    except TimeoutError:
        return [f"no answer within {ANSWER_S} s"], 0, ""
    if not head:
        return [], 0, ""
    lines = head.lower().split(b"\r\n")
    status = int(lines[0].split()[1])
    found: list[str] = []
    if status >= 500 and status not in MEANT:
        found.append(f"status {status}: {body[:500]!r}")
    if any(line.startswith(INJECTED.encode()) for line in lines):
        found.append("a header was injected")
    headers = dict(line.split(b": ", 1) for line in lines[1:] if b": " in line)
    is_own = status not in (400, 503) or b"content-security-policy" in headers  # uvicorn answers what is not HTTP
    if is_own and b"content-security-policy" not in headers:
        found.append(f"no Content-Security-Policy: {head!r}")
    page = ""
    if headers.get(b"content-type", b"").startswith((b"text/html", b"text/event-stream")):
        page = body.decode("utf-8", "replace")
        if MARKER in page or "<img src=x" in page:
            found.append("HTML of a value is not escaped")
    return found, status, page


def _answer(address: tuple[str, int], request: FuzzedRequest) -> tuple[bytes, bytes]:
    """The head and the body of the response; of a stream of events what comes first."""
    received = bytearray()
    with socket.create_connection(address, ANSWER_S) as connection:
        try:
            wire = request.wire
            step = max(1, -(-len(wire) // request.pieces))
            for at in range(0, len(wire), step):
                connection.sendall(wire[at : at + step])
            leaves = _announces_more(request)  # the console would wait for the rest
            until = time.monotonic() + (LEAVES_S if leaves else ANSWER_S)
            while len(received) < READ_MAX:
                if b"text/event-stream" in received[:4_096] and b"\r\n\r\n" in received[:8_192]:
                    until = min(until, time.monotonic() + EVENT_S)
                if not select.select([connection], [], [], max(0.0, until - time.monotonic()))[0]:
                    if leaves or b"text/event-stream" in received[:4_096]:
                        break
                    raise TimeoutError
                piece = connection.recv(1 << 16)
                if not piece:
                    break
                received += piece
                if b"event: " in received and b"text/event-stream" in received[:4_096]:
                    break
        except (ConnectionError, BrokenPipeError):
            pass
    head, _, body = bytes(received).removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n").partition(b"\r\n\r\n")
    return head, body


def _announces_more(request: FuzzedRequest) -> bool:
    """Whether the request says that its body is longer than it is."""
    headers = dict(request.headers)
    length = headers.get(b"content-length", b"0")
    return b"transfer-encoding" in headers or (length.isdigit() and int(length) > len(request.body))
