"""A real broker for tests, on a free port: `with broker() as kafka:` and, with the pytest plugin, the fixture `broker`.

It is the broker of `barnabas up`. By default it runs in a thread of the test's process with an event loop of its own: it starts in about
ten milliseconds and stops in a few. Its data is deleted when it stops, and is in memory if the machine has room for that, so that no test
waits for a disk. With `process=True` it is a process of its own, which can be killed; it takes half a second to start.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, TypeAlias

from barnabas.broker.config.synonyms import near_config_name
from barnabas.broker.server.server import BrokerServer
from barnabas.config_def import InvalidConfig, value_text
from barnabas.endpoint import EndPoint, SecurityProtocol, host_and_port
from barnabas.network.event_loop import new_event_loop
from barnabas.properties import format_properties
from barnabas.protocol.framing import parse_response_header, request_frame
from barnabas.protocol.message import Message
from barnabas.protocol.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from barnabas.protocol.registry import BY_NAME
from barnabas.security.new_user import NewUser
from barnabas.tools.running.logs import TextFormatter
from barnabas.tools.running.secured import Secured, prepare
from barnabas.tools.running.settings import settings

START_TIMEOUT_S: Final = 120  # for a machine that is busy with other tests
STOP_TIMEOUT_S: Final = 60
REQUEST_TIMEOUT_S: Final = 30
# In process, a client that is still connected when a test stops its broker was not closed by the test: the broker does not wait for it.
SHUTDOWN_TIMEOUT_MS: Final = 200
LOG_LINES_MAX: Final = 10_000
MEMORY_DIR: Final = "/dev/shm"
MEMORY_BYTES_MIN: Final = 1024**3  # with less room than this, as in containers with a small /dev/shm, the disk is used
# Replication factors for one node, and few partitions of internal topics: their creation delays the first group.
SETTINGS: Final = {
    "broker.id": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}

# Names, or names with their numbers of partitions.
Topics: TypeAlias = Iterable[str] | Mapping[str, int]

__all__ = ["broker", "EmbeddedBroker", "BrokerFailed"]


class BrokerFailed(RuntimeError):
    """The broker did not start or has failed; the message says why."""


def broker(
    topics: Topics = (),
    *,
    config: Mapping[str, Any] | None = None,
    data: str | os.PathLike[str] | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    process: bool = False,
    secure: bool = False,
    **overrides: Any,
) -> EmbeddedBroker:
    """A broker for a with statement: `with broker(topics=["orders"]) as kafka:`, `async with …`, or `start()` and `stop()`.

    Settings are the broker's own, by their names in `config`, or as keyword arguments with `_` for `.`. `data` is a directory that is kept.
    `secure` makes it a broker of `barnabas up --secure`: clients need `client_config`.
    """
    own = {**SETTINGS, "listeners": f"{'SASL_SSL' if secure else 'PLAINTEXT'}://{host_and_port(host, port)}"}
    if secure:
        own["security.inter.broker.protocol"] = "SASL_SSL"
    settings_of_caller = {**(config or {}), **{name.replace("_", "."): value for name, value in overrides.items()}}
    properties = {name: value_text(value) or "" for name, value in {**own, **settings_of_caller}.items()}
    return EmbeddedBroker(topics, properties, data, process, secure)


class EmbeddedBroker:
    """The result of `broker`. It may be started and stopped repeatedly, by one thread at a time."""

    def __init__(
        self, topics: Topics, properties: Mapping[str, str], data: str | os.PathLike[str] | None, process: bool, secure: bool
    ) -> None:
        self._topics = topics
        self._properties = dict(properties)
        self._listeners: list[EndPoint] = []  # with their actual ports
        self._kept_data = None if data is None else Path(data)
        self._data: Path | None = None
        self._process = process
        self._secure = secure
        self._secured: Secured | None = None
        self._running: _Running | None = None
        self._log: deque[str] = deque(maxlen=LOG_LINES_MAX)
        _check_settings(properties)

    @property
    def bootstrap_servers(self) -> str:
        """host:port, for the client's setting bootstrap.servers."""
        return host_and_port(self.host, self.port)

    @property
    def host(self) -> str:
        """The address that the broker listens on: 127.0.0.1 unless another was given."""
        return self._first_listener.host

    @property
    def port(self) -> int:
        """A port that was free at the first start; later starts use the same port."""
        return self._first_listener.port

    @property
    def listeners(self) -> dict[str, str]:
        """host:port of each listener by name, if `listeners` has several."""
        return {endpoint.listener_name: host_and_port(endpoint.host, endpoint.port) for endpoint in self._listeners}

    @property
    def client_config(self) -> dict[str, str]:
        """The settings that a client needs, by Kafka's names: `Producer(kafka.client_config)`. Those of a Java client are the same."""
        security = self._files_of_security.client_config if self._secure else {}
        return {"bootstrap.servers": self.bootstrap_servers, **security}

    @property
    def librdkafka_config(self) -> dict[str, str]:
        """The same for clients that are made of librdkafka: `confluent_kafka.Producer(kafka.librdkafka_config)`."""
        security = self._files_of_security.librdkafka_config if self._secure else {}
        return {"bootstrap.servers": self.bootstrap_servers, **security}

    @property
    def ca_file(self) -> str:
        """The certificate that clients of a broker with `secure=True` must trust, as PEM."""
        return str(self._files_of_security.ca)

    @property
    def password(self) -> str:
        """The password of the user `admin` of a broker with `secure=True`, by SCRAM-SHA-512."""
        return self._files_of_security.admin_password

    @property
    def _files_of_security(self) -> Secured:
        if self._secured is None:
            raise RuntimeError("Only a started broker with secure=True has certificates and passwords")
        return self._secured

    @property
    def _first_listener(self) -> EndPoint:
        if not self._listeners:
            raise RuntimeError("The broker has no port before it is started")
        return self._listeners[0]

    @property
    def data(self) -> Path:
        """The directory of its logs, from the first start until it is stopped."""
        if self._data is None:
            raise RuntimeError("The broker has no data before it is started and after it is closed")
        return self._data

    @property
    def is_running(self) -> bool:
        """Whether the broker is started and has not failed."""
        return self._running is not None and self._running.is_alive

    @property
    def log(self) -> list[str]:
        """The last lines of its log. In process, the level is that of Python's logger `barnabas`: warning by default."""
        return list(self._log)

    def start(self) -> None:
        """Returns when the broker is ready for clients and has its topics. Raises BrokerFailed."""
        if self._running is not None:
            raise RuntimeError("The broker is running already")
        is_first = self._data is None
        if self._data is None:
            self._data = self._kept_data or _temporary_directory()
        properties = {**self._properties, "log.dirs": str(self._data)}
        try:
            self._running = self._new_process(properties) if self._process else self._new_thread(properties)
            self._listeners = self._running.listeners
            self._properties["listeners"] = ",".join(map(str, self._listeners))
            atexit.register(self.stop)
            if is_first:
                self.create_topics(self._topics)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Shuts the broker down, and deletes its data unless `data` was given. Does nothing if it is not running."""
        try:
            self._halt()
        finally:
            if self._data is not None and self._kept_data is None:
                shutil.rmtree(self._data, ignore_errors=True)
            self._data = None

    def restart(self) -> None:
        """Shuts the broker down and starts it on the same port with the same data, as in an upgrade: clients reconnect."""
        self._halt()
        self.start()

    def pause(self) -> None:
        """Shuts the broker down, but keeps its port and data for `start`, as for a broker that is down for a while."""
        self._halt()

    def kill(self) -> None:
        """Sends SIGKILL, as a crash would: `start` then recovers the logs. Only for a broker with `process=True`."""
        if not isinstance(self._running, _Process):
            raise RuntimeError("Only a broker that runs as a process can be killed: make it with broker(process=True)")
        running, self._running = self._running, None
        running.kill()

    def create_topic(self, name: str, partitions: int = 1, **config: Any) -> str:
        """Creates a topic and returns its name; settings of the topic have `_` for `.`. Waits until the broker leads it."""
        settings = {setting.replace("_", "."): value_text(value) for setting, value in config.items()}
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=setting, value=value) for setting, value in settings.items()],
        )
        self._create([topic])
        return name

    def create_topics(self, topics: Topics) -> None:
        """Creates several topics, by their names or as `{name: partitions}`."""
        counts = topics if isinstance(topics, Mapping) else dict.fromkeys([topics] if isinstance(topics, str) else topics, 1)
        if counts:
            self._create([CreatableTopic(name=name, num_partitions=count, replication_factor=1) for name, count in counts.items()])

    def __enter__(self) -> EmbeddedBroker:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    async def __aenter__(self) -> EmbeddedBroker:
        await asyncio.get_running_loop().run_in_executor(None, self.start)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.stop)

    def __repr__(self) -> str:
        return f"<broker at {','.join(map(str, self._listeners))}, {'running' if self.is_running else 'not running'}>"

    def _new_process(self, properties: dict[str, str]) -> _Process:
        if not self._secure:
            return _Process(properties, self._log)
        host = settings(properties).config.listeners[0].host
        running = _Process(properties, self._log, ["--secure", "--host", host])
        self._secured = prepare(properties["log.dirs"], [host])
        return running

    def _new_thread(self, properties: dict[str, str]) -> _Thread:
        if not self._secure:
            return _Thread(properties, self._log)
        self._secured = prepare(properties["log.dirs"], [endpoint.host for endpoint in settings(properties).config.listeners])
        return _Thread({**self._secured.broker_settings, **properties}, self._log, self._secured.new_users)

    def _halt(self) -> None:
        atexit.unregister(self.stop)
        running, self._running = self._running, None
        if running is not None:
            running.stop()

    def _create(self, topics: Sequence[CreatableTopic]) -> None:
        if self._secure:
            self._create_with_client(topics)
            return
        request = CreateTopicsRequest(topics=list(topics), timeout_ms=REQUEST_TIMEOUT_S * 1000)
        for result in self._ask(request).topics:
            if result.error_code:
                raise BrokerFailed(f"The topic {result.name} cannot be made: {result.error_message or f'error {result.error_code}'}")

    def _create_with_client(self, topics: Sequence[CreatableTopic]) -> None:
        from barnabas.client import Admin, KafkaError, NewTopic

        new = [
            NewTopic(topic.name, topic.num_partitions, 1, configs={row.name: row.value or "" for row in topic.configs}) for topic in topics
        ]
        try:
            with Admin(self.client_config) as admin:
                admin.create_topics(new).all()
        except KafkaError as error:
            raise BrokerFailed(f"The topics {', '.join(topic.name for topic in topics)} cannot be made: {error}") from error

    def _ask(self, request: Message) -> Any:
        if self._running is None:
            raise RuntimeError("The broker is not running")
        for listener in self._listeners:
            if listener.security_protocol is SecurityProtocol.PLAINTEXT:
                return ask(listener.host, listener.port, request)
        raise RuntimeError("Topics are created through a PLAINTEXT listener: add one to `listeners`, or create them with a client")


def ask(host: str, port: int, request: Message) -> Any:
    """Sends one request on a connection of its own, in the newest stable version."""
    api = BY_NAME[type(request).__name__.removesuffix("Request")]
    version = api.stable_version
    with socket.create_connection((host, port), REQUEST_TIMEOUT_S) as connection, connection.makefile("rb") as answers:
        connection.sendall(b"".join(request_frame(request, api, version, 1, "barnabas.testing")))
        frame = answers.read(int.from_bytes(answers.read(4), "big"))
    _, reader = parse_response_header(frame, api.response_header_version(version))
    return api.response.read(reader, version)


class _Running(Protocol):
    listeners: list[EndPoint]

    @property
    def is_alive(self) -> bool: ...

    def stop(self) -> None: ...


class _Thread:
    """A broker in a thread of this process. It leaves the settings of the process (signals, garbage collector, limits) unchanged."""

    def __init__(self, properties: Mapping[str, str], log: deque[str], new_users: Sequence[NewUser] = ()) -> None:
        self._config = settings(properties).config
        self._new_users = new_users
        self._ready: Future[list[EndPoint]] = Future()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="barnabas-broker", daemon=True)
        self._handler = _LogOfThread(self._thread, log)
        logging.getLogger("barnabas").addHandler(self._handler)
        self._thread.start()
        try:
            self.listeners = self._ready.result(START_TIMEOUT_S)
        except Exception as error:
            logging.getLogger("barnabas").removeHandler(self._handler)
            raise BrokerFailed(f"The broker did not start: {error or type(error).__name__}") from error

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._stop_requested.set)
        except RuntimeError:
            pass  # the broker has failed and its loop is closed
        self._thread.join(STOP_TIMEOUT_S)
        logging.getLogger("barnabas").removeHandler(self._handler)
        if self._thread.is_alive():
            raise BrokerFailed(f"The broker did not stop within {STOP_TIMEOUT_S} s")
        if self._failure is not None:
            raise BrokerFailed(f"The broker failed: {self._failure}") from self._failure

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self._failure = error
            if not self._ready.done():
                self._ready.set_exception(error)

    async def _serve(self) -> None:
        self._loop, self._stop_requested = asyncio.get_running_loop(), asyncio.Event()
        server = BrokerServer(self._config, new_users=self._new_users)
        await server.start()
        try:
            self._ready.set_result(server.endpoints)
            stopping = asyncio.ensure_future(self._stop_requested.wait())
            await asyncio.wait((stopping, server.failed), return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
        finally:
            await server.shutdown(SHUTDOWN_TIMEOUT_MS)
        if server.failed.done():
            self._failure = server.failed.result()


class _LogOfThread(logging.Handler):
    """Collects the log records of the broker's thread. It does not change the level of any logger."""

    def __init__(self, thread: threading.Thread, log: deque[str]) -> None:
        super().__init__()
        self._thread, self._log = thread, log
        self.setFormatter(TextFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread.ident:
            self._log.append(self.format(record))


class _Process:
    """`barnabas up` as a process of its own."""

    _READY: Final = re.compile(r"^ready listeners=(\S+) ")

    def __init__(self, properties: Mapping[str, str], log: deque[str], options: Sequence[str] = ()) -> None:
        # Settings are passed by a pipe: other users can read secrets on a command line.
        command = [sys.executable, "-m", "barnabas", "up", "--data", properties["log.dirs"], "--override-file", "/dev/stdin", *options]
        path = os.pathsep.join(filter(None, (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH"))))
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, "PYTHONPATH": path},
        )
        assert self._process.stdin is not None
        with suppress(BrokenPipeError), self._process.stdin as pipe:  # the reason of an early end is reported below
            pipe.write(format_properties(properties, now_ms=0))
        self._ready: Future[list[EndPoint]] = Future()
        self._settings = properties
        self._reader = threading.Thread(target=self._read, args=(log,), name="barnabas-broker-output", daemon=True)
        self._reader.start()
        try:
            self.listeners = self._ready.result(START_TIMEOUT_S)
        except Exception as error:
            self.kill()
            raise BrokerFailed(f"The broker did not start: {error or type(error).__name__}") from error

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """A second signal ends the wait for clients; closing the logs takes as long as needed."""
        steps = ((signal.SIGTERM, SHUTDOWN_TIMEOUT_MS / 1000), (signal.SIGTERM, STOP_TIMEOUT_S), (signal.SIGKILL, STOP_TIMEOUT_S))
        for number, timeout_s in steps:
            self._process.send_signal(number)
            try:
                self._process.wait(timeout_s)
                break
            except subprocess.TimeoutExpired:
                continue
        self._close()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(STOP_TIMEOUT_S)
        self._close()

    def _close(self) -> None:
        self._reader.join(STOP_TIMEOUT_S)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _read(self, log: deque[str]) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            ready = self._READY.match(line)
            if ready is not None and not self._ready.done():
                self._ready.set_result(settings({**self._settings, "listeners": ready[1]}).config.broker_listeners)
            else:
                log.append(line.rstrip("\n"))
        if not self._ready.done():
            reason = next((line for line in reversed(log) if line.startswith("barnabas: ")), "\n".join(log))
            self._ready.set_exception(RuntimeError(reason.removeprefix("barnabas: ")))


def _check_settings(properties: Mapping[str, str]) -> None:
    """Rejects a misspelled setting at once, where a broker would only warn. Unknown names may be settings of a policy class."""
    for name in settings({"log.dirs": "none", **properties}).config.unknown:
        intended = near_config_name(name)
        if intended is not None:
            raise InvalidConfig(f"Unknown setting of a broker: {name}: did you mean {intended}?")
        warnings.warn(f"Unknown setting of a broker: {name}. It has no effect, unless a policy class reads it.", stacklevel=4)


def _temporary_directory() -> Path:
    try:
        room = shutil.disk_usage(MEMORY_DIR).free
        where = MEMORY_DIR if room >= MEMORY_BYTES_MIN and os.access(MEMORY_DIR, os.W_OK) else None
    except OSError:
        where = None  # not Linux
    return Path(tempfile.mkdtemp(prefix="barnabas-", dir=where))
