"""What a user sees whose brokers cannot be reached: one warning, and the reason in every Timeout, as text and as its cause."""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from barnabas.client import Admin, AsyncAdmin, AsyncConsumer, AsyncProducer, Consumer, Producer, TopicPartition
from barnabas.client.errors import ConfigException, Disconnected, KafkaError, SendFailed, SslAuthentication, Timeout
from barnabas.client.network import connections
from barnabas.testing import broker
from tests import certificates
from tests.certificates import Certificates
from tests.client_network import on_loop
from tests.logged import lines_of

P = TopicPartition("t", 0)
WAIT_S = 30
WAIT_MS = 50  # of the calls that time out, once the reason is known

REFUSED = r"localhost:{port} \(bootstrap\.servers\) refused the connection: no broker listens on this port"
DROPPED = (
    r"127\.0\.0\.1:{port} \(bootstrap\.servers\) did not answer within \d+ ms \(socket\.connection\.setup\.timeout\.ms\): "
    r"is a firewall in the way, or the host down\?"
)
PLAIN_PORT = (
    r"localhost:{port} \(bootstrap\.servers\) closed the connection during the TLS handshake: if the port does not speak TLS "
    r"set security\.protocol=PLAINTEXT, or SASL_PLAINTEXT if it asks for a password"
)
TLS_PORT = (
    r"localhost:{port} \(bootstrap\.servers\) closed the connection before it answered ApiVersions: if the broker speaks TLS on this port "
    r"set security\.protocol=SSL, otherwise it may be stopping, or no Kafka broker"
)

Case = tuple[dict[str, Any], str]


@pytest.fixture
def refused() -> Case:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    return {"bootstrap_servers": f"localhost:{port}"}, REFUSED.format(port=port)


@pytest.fixture
def dropped() -> Iterator[Case]:
    """A listening socket whose backlog is full: the system drops further attempts, as a firewall does."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        port = server.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", port))
        yield {"bootstrap_servers": f"127.0.0.1:{port}", "socket_connection_setup_timeout_ms": 50}, DROPPED.format(port=port)
        for each in waiting:
            each.close()


@pytest.fixture
def plain_port() -> Iterator[Case]:
    with broker() as kafka:
        port = kafka.bootstrap_servers.rpartition(":")[2]
        yield {"bootstrap_servers": f"localhost:{port}", "security_protocol": "SSL"}, PLAIN_PORT.format(port=port)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates.make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def tls_port(files: Certificates) -> Iterator[Case]:
    settings = {
        "listeners": "SSL://localhost:0",
        "security.inter.broker.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(files.server_store),
    }
    with broker(config=settings) as kafka:
        port = kafka.bootstrap_servers.rpartition(":")[2]
        yield {"bootstrap_servers": f"localhost:{port}"}, TLS_PORT.format(port=port)


@pytest.fixture(params=["refused", "dropped", "plain_port", "tls_port"])
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.getfixturevalue(request.param)
    return found


def known(client: Any) -> KafkaError:
    """The reason, once the client has it."""
    deadline = time.monotonic() + WAIT_S
    while (error := client.last_connection_error()) is None:
        assert time.monotonic() < deadline, "no connection error within 30 s"
        time.sleep(0.01)
    assert isinstance(error, KafkaError)
    return error


async def soon_known(client: Any) -> None:
    async with asyncio.timeout(WAIT_S):
        while client.last_connection_error() is None:
            await asyncio.sleep(0.01)


def check(error: BaseException, reason: str) -> None:
    """The reason is in the text and the cause of a Timeout."""
    assert isinstance(error, Timeout), error
    assert re.search(f"; the last connection error: {reason}$", str(error)), str(error)
    assert isinstance(error.__cause__, Disconnected | Timeout)
    assert re.fullmatch(reason, str(error.__cause__))


def test_a_producer_that_blocks_says_why_it_reaches_nobody(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    settings, reason = case
    with Producer(max_block_ms=WAIT_MS, **settings) as producer:
        known(producer)
        with pytest.raises(Timeout, match=r"^Topic t not present in metadata after 50 ms; ") as raised:
            producer.send("t", b"x").result()
        check(raised.value, reason)
    warned = [line for line in lines_of(caplog, connections, 30) if re.match(reason, line)]
    assert len(warned) == 1 and warned[0].endswith("; the client tries again")


def test_a_producer_on_asyncio_says_why_it_reaches_nobody(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    settings, reason = case

    async def run() -> None:
        async with AsyncProducer(max_block_ms=WAIT_MS, **settings) as producer:
            await soon_known(producer)
            with pytest.raises(Timeout, match=r"^Topic t not present in metadata after 50 ms; ") as raised:
                await (await producer.send("t", b"x"))
            check(raised.value, reason)

    on_loop(run)
    assert len([line for line in lines_of(caplog, connections, 30) if re.match(reason, line)]) == 1


BLOCKING: dict[str, Callable[[Any], object]] = {
    "position": lambda consumer: consumer.position(P, WAIT_MS / 1000),
    "committed": lambda consumer: consumer.committed([P], WAIT_MS / 1000),
    "commit_sync": lambda consumer: consumer.commit_sync({P: 1}, WAIT_MS / 1000),
    "partitions_for": lambda consumer: consumer.partitions_for("t", WAIT_MS / 1000),
    "list_topics": lambda consumer: consumer.list_topics(WAIT_MS / 1000),
    "beginning_offsets": lambda consumer: consumer.beginning_offsets([P], WAIT_MS / 1000),
    "end_offsets": lambda consumer: consumer.end_offsets([P], WAIT_MS / 1000),
    "offsets_for_times": lambda consumer: consumer.offsets_for_times({P: 0}, WAIT_MS / 1000),
}


def test_every_call_of_a_consumer_says_why_it_timed_out(refused: Case) -> None:
    settings, reason = refused
    with Consumer[bytes, bytes](group_id="g", enable_auto_commit=False, **settings) as consumer:
        consumer.assign([P])
        known(consumer)
        assert not consumer.poll(0.01)
        for name, call in BLOCKING.items():
            with pytest.raises(Timeout) as raised:
                call(consumer)
            check(raised.value, reason)
            assert str(raised.value).count("the last connection error") == 1, name


def test_every_call_of_a_consumer_on_asyncio_says_why_it_timed_out(refused: Case) -> None:
    settings, reason = refused

    async def run() -> None:
        async with AsyncConsumer[bytes, bytes](group_id="g", enable_auto_commit=False, **settings) as consumer:
            await consumer.assign([P])
            await soon_known(consumer)
            for call in BLOCKING.values():
                waiting: Any = call(consumer)
                with pytest.raises(Timeout) as raised:
                    await waiting
                check(raised.value, reason)

    on_loop(run)


def test_calls_of_an_admin_say_why_they_timed_out(case: Case) -> None:
    settings, reason = case
    with Admin(**settings) as admin:
        with pytest.raises(Timeout):
            admin.list_topics(timeout_ms=WAIT_MS)
        known(admin)
        with pytest.raises(Timeout, match=r"^Timed out waiting for a node assignment\. Call: list_topics; ") as raised:
            admin.list_topics(timeout_ms=WAIT_MS)
        check(raised.value, reason)
        check(admin.describe_consumer_groups(["g"], timeout_ms=WAIT_MS).errors["g"], reason)


def test_calls_of_an_admin_on_asyncio_say_why_they_timed_out(case: Case) -> None:
    settings, reason = case

    async def run() -> None:
        async with AsyncAdmin(**settings) as admin:
            with pytest.raises(Timeout):
                await admin.list_topics(timeout_ms=WAIT_MS)
            await soon_known(admin)
            with pytest.raises(Timeout) as raised:
                await admin.list_topics(timeout_ms=WAIT_MS)
            check(raised.value, reason)

    on_loop(run)


def test_transactions_that_cannot_begin_say_why(refused: Case) -> None:
    settings, reason = refused
    with Producer(max_block_ms=WAIT_MS, transactional_id="x", **settings) as producer:
        known(producer)
        with pytest.raises(Timeout, match=r"^Timeout expired after 50ms while awaiting init_transactions; ") as raised:
            producer.init_transactions()
        check(raised.value, reason)

    async def run() -> None:
        async with AsyncProducer(max_block_ms=WAIT_MS, transactional_id="y", **settings) as producer:
            await soon_known(producer)
            with pytest.raises(Timeout) as raised:
                await producer.init_transactions()
            check(raised.value, reason)

    on_loop(run)


def test_records_of_a_broker_that_went_away_say_why_they_expired() -> None:
    with broker(topics=["t"]) as kafka:
        settings: dict[str, Any] = {"delivery_timeout_ms": 3000, "request_timeout_ms": 2500, "linger_ms": 0}
        # With rebootstrap the topic would be forgotten, and the send wait for metadata.
        producer = Producer(bootstrap_servers=kafka.bootstrap_servers, metadata_recovery_strategy="none", **settings)
        producer.send("t", b"arrives").result(WAIT_S)
        port = kafka.bootstrap_servers.rpartition(":")[2]
    reason = rf"127\.0\.0\.1:{port} \((bootstrap\.servers|advertised\.listeners of broker \d+)\) refused the connection: .*"
    expires = producer.send("t", b"expires")
    deadline = time.monotonic() + WAIT_S
    while "refused" not in str(producer.last_connection_error()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    late = producer.send("t", b"late")
    with pytest.raises(Timeout, match=r"^Timeout after waiting for 1 ms; ") as raised:
        late.result(0.001)
    check(raised.value, reason)
    assert isinstance(expires.exception(WAIT_S), Timeout)
    with pytest.raises(Timeout, match=r"^Expiring \d record\(s\) for t-0:\d+ ms has passed since batch creation; ") as raised:
        late.result(WAIT_S)
    check(raised.value, reason)
    producer.close(0)


def test_a_producer_that_is_closed_too_early_says_why_records_were_given_up() -> None:
    with broker(topics=["t"]) as kafka:
        producer = Producer(bootstrap_servers=kafka.bootstrap_servers)
        producer.send("t", b"arrives").result(WAIT_S)
    delivery = producer.send("t", b"is given up")
    known(producer)
    with pytest.raises(SendFailed, match=r"Producer is closed forcefully; the last connection error: .*127\.0\.0\.1:"):
        producer.close(0)
    with pytest.raises(KafkaError, match=r"^Producer is closed forcefully; the last connection error: ") as raised:
        delivery.result(WAIT_S)
    assert isinstance(raised.value.__cause__, Disconnected)


UNKNOWN = (
    r"^No resolvable bootstrap urls given in bootstrap\.servers: nosuch\.invalid:9092: the host name nosuch\.invalid is not known \(.+\)$"
)


def test_an_unknown_host_is_said_at_once(caplog: pytest.LogCaptureFixture) -> None:
    for client in (Producer, Consumer):
        with pytest.raises(ConfigException, match=UNKNOWN) as raised:
            client(bootstrap_servers="nosuch.invalid:9092")
        assert isinstance(raised.value.__cause__, socket.gaierror)
    with Admin(bootstrap_servers="nosuch.invalid:9092") as admin:
        for _ in range(2):
            with pytest.raises(ConfigException, match=UNKNOWN):
                admin.list_topics()

    async def run() -> None:
        producer = AsyncProducer(bootstrap_servers="nosuch.invalid:9092")
        for _ in range(2):
            with pytest.raises(ConfigException, match=UNKNOWN):
                await producer.send("t", b"x")
        await producer.close()

    on_loop(run)
    assert lines_of(caplog, connections, 30) == []


def test_an_attempt_that_is_still_under_way_is_named_in_a_timeout(dropped: Case) -> None:
    settings, _ = dropped
    with Producer(max_block_ms=WAIT_MS, **settings | {"socket_connection_setup_timeout_ms": 600_000}) as producer:
        known(producer)
        with pytest.raises(Timeout) as raised:
            producer.partitions_for("t")
        check(
            raised.value,
            r"127\.0\.0\.1:\d+ \(bootstrap\.servers\) has not answered for \d+ ms: is a firewall in the way, or the host down\?",
        )


def test_tls_to_a_port_that_answers_something_else_is_raised_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with Producer(bootstrap_servers=f"127.0.0.1:{port}", security_protocol="SSL") as producer:
            accepted, _ = server.accept()
            accepted.sendall(b"220 mail.example ESMTP\r\n")
            with (
                accepted,
                pytest.raises(SslAuthentication, match=rf"^127\.0\.0\.1:{port} \(bootstrap\.servers\) does not speak TLS on this port"),
            ):
                producer.partitions_for("t")
