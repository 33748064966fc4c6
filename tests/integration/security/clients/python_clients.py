"""The clients in Python, which run in the process of the test: confluent-kafka (librdkafka), kafka-python, aiokafka and ours."""

from __future__ import annotations

import asyncio
import ssl
import time
import warnings
from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import Any, TypeVar

import aiokafka
import aiokafka.abc
import aiokafka.errors
import confluent_kafka

from barnabas.client import Consumer, Producer
from barnabas.errors import KafkaError
from barnabas.topic_partition import TopicPartition
from tests.integration.security.clients.login import GROUP, VALUE, WAIT_S, Login, Refused

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it reads its own files in a way that newer Pythons advise against
    import kafka
    from kafka.net.sasl.oauth import AbstractTokenProvider

T = TypeVar("T")
_HOUR_S = 3600
_GIVES_UP_MS = 2_000  # kafka-python tries again with a password or certificate that was refused


class Confluent:
    """librdkafka reports why it cannot connect by a callback, and tries again until the record has timed out."""

    def __init__(self, login: Login) -> None:
        self._login = login
        self._problems: list[confluent_kafka.KafkaError] = []

    def send(self) -> None:
        delivered: list[confluent_kafka.KafkaError | None] = []
        self._producer.produce(self._login.topic, VALUE, partition=0, on_delivery=lambda error, _: delivered.append(error))
        self._wait(lambda: self._producer.poll(0.05), lambda: bool(delivered))
        if delivered[0] is not None:
            raise _refused(delivered[0])

    def read(self) -> bytes:
        consumer = self._consumer
        consumer.assign([confluent_kafka.TopicPartition(self._login.topic, 0, confluent_kafka.OFFSET_BEGINNING)])
        values: list[bytes] = []

        def poll() -> None:
            message = consumer.poll(0.05)
            if message is None:
                return
            if error := message.error():
                raise _refused(error)
            values.append(message.value() or b"")

        self._wait(poll, lambda: bool(values))
        return values[0]

    def close(self) -> None:
        if "_producer" in self.__dict__:
            self._producer.purge()
            self._producer.flush(1)
        if "_consumer" in self.__dict__:
            self._consumer.close()

    def _wait(self, poll: Callable[[], object], is_done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_S
        while not is_done():
            poll()
            if self._problems and not is_done():
                raise _refused(self._problems[0])
            if time.monotonic() > deadline:
                raise Refused("no answer")

    @cached_property
    def _producer(self) -> confluent_kafka.Producer:
        return confluent_kafka.Producer(self._settings())

    @cached_property
    def _consumer(self) -> confluent_kafka.Consumer:
        return confluent_kafka.Consumer(self._settings() | {"group.id": GROUP, "enable.auto.commit": False})

    def _settings(self) -> dict[str, Any]:
        login = self._login
        settings: dict[str, Any] = {
            "bootstrap.servers": login.bootstrap,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(login.authority),
            "sasl.mechanisms": login.mechanism,
            "error_cb": self._on_error,
            "log_level": 0,
        }
        if login.mechanism == "OAUTHBEARER":
            return settings | {"oauth_cb": lambda _: (login.token, time.time() + _HOUR_S)}
        return settings | {"sasl.username": login.user, "sasl.password": login.password}

    def _on_error(self, error: confluent_kafka.KafkaError) -> None:
        """Not what follows from an error: that no broker is left, and that the connection is closed."""
        if error.name() in ("_AUTHENTICATION", "_SSL"):
            self._problems.append(error)


def _refused(error: confluent_kafka.KafkaError) -> Refused:
    return Refused(f"{error.name()}: {error.str()}")


class KafkaPython:
    def __init__(self, login: Login) -> None:
        self._login = login

    def send(self) -> None:
        _kafka_python(lambda: self._producer.send(self._login.topic, VALUE, partition=0).get(WAIT_S))

    def read(self) -> bytes:
        return _kafka_python(self._read)

    def close(self) -> None:
        for made in {"_producer", "_consumer"} & self.__dict__.keys():
            self.__dict__[made].close()

    def _read(self) -> bytes:
        partition = kafka.TopicPartition(self._login.topic, 0)
        self._consumer.assign([partition])
        self._consumer.seek_to_beginning(partition)
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            if messages := self._consumer.poll(500).get(partition):
                value: bytes = messages[0].value
                return value
        raise Refused("no answer")

    @cached_property
    def _producer(self) -> Any:
        return kafka.KafkaProducer(**self._settings(), acks="all", max_block_ms=WAIT_S * 1000)

    @cached_property
    def _consumer(self) -> Any:
        return kafka.KafkaConsumer(**self._settings(), group_id=None)

    def _settings(self) -> dict[str, Any]:
        login = self._login
        settings: dict[str, Any] = {
            "bootstrap_servers": login.bootstrap,
            "security_protocol": "SASL_SSL",
            "ssl_cafile": str(login.authority),
            "sasl_mechanism": login.mechanism,
            "bootstrap_timeout_ms": WAIT_S * 1000 if login.is_good else _GIVES_UP_MS,
        }
        if login.mechanism == "OAUTHBEARER":
            return settings | {"sasl_oauth_token_provider": _Token(login.token)}
        if login.mechanism == "GSSAPI":
            return settings | {"sasl_kerberos_service_name": login.service}
        return settings | {"sasl_plain_username": login.user, "sasl_plain_password": login.password}


class _Token(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python has no types
    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token

    def token(self) -> str:
        return self._token


def _kafka_python(work: Callable[[], T]) -> T:
    try:
        return work()
    except kafka.errors.KafkaError as error:
        raise Refused(f"{type(error).__name__}: {error}") from error


class AioKafka:
    """Has an event loop of its own, on which its connections live between calls."""

    def __init__(self, login: Login) -> None:
        self._login = login
        self._loop = asyncio.new_event_loop()
        self._producer: aiokafka.AIOKafkaProducer | None = None
        self._consumer: aiokafka.AIOKafkaConsumer | None = None

    def send(self) -> None:
        self._run(self._send())

    def read(self) -> bytes:
        return self._run(self._read())

    def close(self) -> None:
        for started in (self._producer, self._consumer):
            if started is not None:
                self._loop.run_until_complete(started.stop())
        self._loop.close()

    async def _send(self) -> None:
        if self._producer is None:
            self._producer = aiokafka.AIOKafkaProducer(**self._settings())
            await self._producer.start()
        await self._producer.send_and_wait(self._login.topic, VALUE, partition=0)

    async def _read(self) -> bytes:
        if self._consumer is None:
            self._consumer = aiokafka.AIOKafkaConsumer(**self._settings())
            await self._consumer.start()
        partition = aiokafka.TopicPartition(self._login.topic, 0)
        self._consumer.assign([partition])
        await self._consumer.seek_to_beginning(partition)
        value: bytes = (await self._consumer.getone()).value
        return value

    def _run(self, work: Awaitable[T]) -> T:
        try:
            return self._loop.run_until_complete(asyncio.wait_for(work, WAIT_S))
        except TimeoutError:
            raise Refused("no answer") from None
        except aiokafka.errors.KafkaError as error:
            raise Refused(f"{type(error).__name__}: {error}") from error

    def _settings(self) -> dict[str, Any]:
        login = self._login
        settings: dict[str, Any] = {
            "bootstrap_servers": login.bootstrap,
            "security_protocol": "SASL_SSL",
            "ssl_context": ssl.create_default_context(cafile=str(login.authority)),
            "sasl_mechanism": login.mechanism,
        }
        if login.mechanism == "OAUTHBEARER":
            return settings | {"sasl_oauth_token_provider": _AsyncToken(login.token)}
        if login.mechanism == "GSSAPI":
            return settings | {"sasl_kerberos_service_name": login.service}
        return settings | {"sasl_plain_username": login.user, "sasl_plain_password": login.password}


class _AsyncToken(aiokafka.abc.AbstractTokenProvider):  # type: ignore[misc]  # aiokafka has no types
    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token


class Barnabas:
    def __init__(self, login: Login) -> None:
        self._login = login

    def send(self) -> None:
        _barnabas(lambda: self._producer.send(self._login.topic, VALUE, partition=0).result(WAIT_S))

    def read(self) -> bytes:
        return _barnabas(self._read)

    def close(self) -> None:
        for made in {"_producer", "_consumer"} & self.__dict__.keys():
            self.__dict__[made].close()

    def _read(self) -> bytes:
        partition = TopicPartition(self._login.topic, 0)
        self._consumer.assign([partition])
        self._consumer.seek_to_beginning([partition])
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            for record in self._consumer.poll(0.5):
                return record.value or b""
        raise Refused("no answer")

    @cached_property
    def _producer(self) -> Producer[bytes, bytes]:
        return Producer(**self._settings())

    @cached_property
    def _consumer(self) -> Consumer[bytes, bytes]:
        return Consumer(**self._settings())

    def _settings(self) -> dict[str, Any]:
        login = self._login
        settings: dict[str, Any] = {
            "bootstrap_servers": login.bootstrap,
            "security_protocol": "SASL_SSL",
            "ssl_truststore_type": "PEM",
            "ssl_truststore_location": str(login.authority),
            "sasl_mechanism": login.mechanism,
        }
        if login.mechanism == "OAUTHBEARER":
            return settings | {"sasl_login_callback_handler_class": lambda: login.token}
        if login.mechanism == "GSSAPI":
            return settings | {"sasl_kerberos_service_name": login.service}
        return settings | {"sasl_username": login.user, "sasl_password": login.password}


def _barnabas(work: Callable[[], T]) -> T:
    try:
        return work()
    except KafkaError as error:
        raise Refused(f"{type(error).__name__}: {error}") from error
