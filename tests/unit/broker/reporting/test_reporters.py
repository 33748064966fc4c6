"""Reporters of metric.reporters and the push by OTLP, in a real broker."""

from __future__ import annotations

import asyncio
import gzip
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar, TypeVar

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from barnabas.broker.config import BrokerConfig
from barnabas.broker.reporting import reporter_thread
from barnabas.broker.reporting.metrics_reporter import Metric, MetricsReporter
from barnabas.broker.server.server import BrokerServer
from barnabas.config_def import InvalidConfig
from barnabas.network.event_loop import run
from benchmarks.wire import Client
from tests.logged import lines_of

T = TypeVar("T")
HERE = "tests.unit.broker.reporting.test_reporters"
JMX = "org.apache.kafka.common.metrics.JmxReporter"


class Recorder(MetricsReporter):
    """Keeps what it is called with, in order."""

    calls: ClassVar[list[tuple[str, object]]] = []

    def configure(self, configs: Mapping[str, str]) -> None:
        self.calls.append(("configure", configs["broker.id"]))

    def init(self, metrics: Sequence[Metric]) -> None:
        self.calls.append(("init", len(metrics)))

    def metric_change(self, metric: Metric) -> None:
        self.calls.append(("added", metric.key))

    def report(self, metrics: Sequence[Metric]) -> None:
        self.calls.append(("report", {metric.name: metric.value for metric in metrics if not metric.labels}))

    def close(self) -> None:
        self.calls.append(("close", None))


class Raiser(MetricsReporter):
    called = threading.Event()

    def report(self, metrics: Sequence[Metric]) -> None:
        self.called.set()
        raise RuntimeError("a mistake of the reporter")


class Sleeper(MetricsReporter):
    """Blocks until it is released."""

    called = threading.Event()
    released = threading.Event()

    def report(self, metrics: Sequence[Metric]) -> None:
        self.called.set()
        self.released.wait(60)


class Refuser(MetricsReporter):
    def configure(self, configs: Mapping[str, str]) -> None:
        raise ValueError("no address is set")


def serving(data: Path, use: Callable[[BrokerServer], Awaitable[T]], settings: dict[str, str]) -> T:
    properties = {"listeners": "PLAINTEXT://127.0.0.1:0", "broker.id": "5", "log.dirs": str(data), **settings}
    properties.setdefault("kafka.metrics.polling.interval.secs", "1")

    async def life() -> T:
        server = BrokerServer(BrokerConfig.from_properties(properties))
        await server.start()
        try:
            return await asyncio.wait_for(use(server), 60)
        finally:
            await server.shutdown(1000)

    return run(life())


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


async def create_topic(server: BrokerServer) -> None:
    def created() -> None:
        with Client("127.0.0.1", server.endpoints[0].port) as client:
            client.create_topics(["orders"])

    await asyncio.to_thread(created)


def test_a_reporter_gets_all_metrics_and_what_is_added(tmp_path: Path) -> None:
    Recorder.calls.clear()
    size = ("kafka_log_log_size", (("topic", "orders"), ("partition", "0")))

    async def use(server: BrokerServer) -> None:
        await create_topic(server)
        await until(lambda: ("added", size) in Recorder.calls)

    serving(tmp_path, use, {"metric.reporters": f"{JMX},{HERE}.Recorder"})
    names = [name for name, _ in Recorder.calls]
    assert (names[:3], names[-1]) == (["configure", "init", "report"], "close")
    first = next(values for name, values in Recorder.calls if name == "report")
    assert isinstance(first, dict)
    assert "kafka_server_replicamanager_partitioncount" in first


def test_a_reporter_that_raises_is_logged_once_and_called_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def use(server: BrokerServer) -> None:
        for _ in range(2):
            Raiser.called.clear()
            await until(Raiser.called.is_set)
        await create_topic(server)

    serving(tmp_path, use, {"metric.reporters": f"{HERE}.Raiser"})
    lines = [line for line in lines_of(caplog, reporter_thread) if "failed" in line]
    assert lines == [f"The reporter {HERE}.Raiser failed and is called again after its interval: a mistake of the reporter"]


def test_a_reporter_that_blocks_misses_reports_and_the_broker_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporter_thread, "CLOSE_SECONDS", 0.01)

    async def use(server: BrokerServer) -> None:
        await until(Sleeper.called.is_set)
        await create_topic(server)
        await until(lambda: any("misses reports" in line for line in lines_of(caplog, reporter_thread)))

    serving(tmp_path, use, {"metric.reporters": f"{HERE}.Sleeper"})
    Sleeper.released.set()
    assert any("is left behind" in line for line in lines_of(caplog, reporter_thread))


@pytest.mark.parametrize("name", ["no.Such", "os.getcwd", "barnabas.broker.broker.Broker", f"{HERE}.Refuser"])
def test_a_class_that_is_no_reporter_stops_the_start(tmp_path: Path, name: str) -> None:
    async def use(server: BrokerServer) -> None:
        raise AssertionError

    with pytest.raises(InvalidConfig, match=r"metric\.reporters"):
        serving(tmp_path, use, {"metric.reporters": name})


def test_reporters_can_change_while_the_broker_runs(tmp_path: Path) -> None:
    Recorder.calls.clear()

    async def use(server: BrokerServer) -> None:
        config = server.broker.config
        with pytest.raises(InvalidConfig, match=r"failed with class class kafka\.server\.DynamicMetricsReporters"):
            config.validate({"metric.reporters": "no.Such"}, per_broker=False)
        assert server.metrics is None
        for value in (f"{HERE}.Recorder", JMX):
            changed = config.update_default({"metric.reporters": value})
            for listener in server.broker.configs.on_broker_change:
                listener(changed)
            awaited = "report" if value != JMX else "close"
            await until(lambda awaited=awaited: any(name == awaited for name, _ in Recorder.calls))  # type: ignore[misc]
        await create_topic(server)
        assert server.observed.kinds.all()  # requests are measured since the first reporter

    serving(tmp_path, use, {})


class Receiver(ThreadingHTTPServer):
    """An OTLP receiver that decodes with OpenTelemetry's own classes."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Push)
        self.requests: list[ExportMetricsServiceRequest] = []
        self.tokens: list[str | None] = []
        self.status = 200


class Push(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        receiver = self.server
        assert isinstance(receiver, Receiver)
        body = gzip.decompress(self.rfile.read(int(self.headers["Content-Length"])))
        receiver.tokens.append(self.headers["X-Token"])
        receiver.requests.append(ExportMetricsServiceRequest.FromString(body))
        self.send_response(receiver.status)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Not on standard error."""


def test_metrics_are_pushed_by_otlp(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    receiver = Receiver()
    receiver.status = 503
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{receiver.server_address[1]}/v1/metrics"

    async def use(server: BrokerServer) -> None:
        await create_topic(server)
        await until(lambda: any("answered with the status 503" in line for line in lines_of(caplog, reporter_thread)))
        receiver.status = 200
        receiver.requests.clear()
        await until(lambda: len(receiver.requests) > 1)

    try:
        otlp = {"metrics.otlp.endpoint": endpoint, "metrics.otlp.interval.ms": "1000", "metrics.otlp.headers": "X-Token=secret"}
        serving(tmp_path, use, otlp)
    finally:
        receiver.shutdown()
        receiver.server_close()
    assert set(receiver.tokens) == {"secret"}
    (of_broker,) = receiver.requests[-1].resource_metrics
    resource = {attribute.key: attribute.value.string_value for attribute in of_broker.resource.attributes}
    assert (resource["service.name"], resource["kafka.broker.id"]) == ("barnabas", "5")
    metrics = {metric.name: metric for metric in of_broker.scope_metrics[0].metrics}
    size = metrics["kafka_log_log_size"]
    assert size.description.startswith("Bytes of the log")
    labels = [{item.key: item.value.string_value for item in point.attributes} for point in size.gauge.data_points]
    assert {"topic": "orders", "partition": "0"} in labels
    requests = metrics["kafka_network_requestmetrics_requests_total"].sum
    assert (requests.is_monotonic, requests.aggregation_temporality) == (True, 2)
    point = requests.data_points[0]
    assert 0 < point.start_time_unix_nano <= point.time_unix_nano
    assert {item.key for item in metrics["kafka_network_requestmetrics_totaltimems"].gauge.data_points[0].attributes} == {
        "request",
        "quantile",
    }


@pytest.mark.parametrize("setting", ["metrics.otlp.endpoint=localhost:4318", "metrics.otlp.headers=a", "metrics.otlp.interval.ms=10"])
def test_a_wrong_setting_of_the_push_is_refused(setting: str) -> None:
    name, _, value = setting.partition("=")
    with pytest.raises(InvalidConfig, match=name):
        BrokerConfig.from_properties({name: value})
