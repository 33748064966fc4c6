from __future__ import annotations

from collections.abc import Iterator

from barnabas.broker.exposition.prometheus_text import LINES_PER_SLICE, names_of, render
from barnabas.broker.exposition.received_text import render_received
from barnabas.broker.telemetry.received_metrics import Series as Pushed
from barnabas.metrics.registry import Distribution, Family, Kind, Series


def family(group: str, kind_of: str, name: str, kind: Kind, *series: Series, labels: tuple[str, ...] = ()) -> Family:
    return Family(group, kind_of, name, kind, "A meaning.", lambda: series, labels)


def test_names_are_those_of_jmx_exporter_and_strimzi() -> None:
    meter = family("kafka.server", "BrokerTopicMetrics", "BytesInPerSec", Kind.METER)
    assert names_of(meter) == [("kafka_server_brokertopicmetrics_bytesin_total", "counter")]
    gauge = family("kafka.server", "ReplicaManager", "LeaderCount", Kind.GAUGE)
    assert names_of(gauge) == [("kafka_server_replicamanager_leadercount", "gauge")]
    histogram = family("kafka.network", "RequestMetrics", "TotalTimeMs", Kind.HISTOGRAM)
    prefix = "kafka_network_requestmetrics_totaltimems"
    assert names_of(histogram) == [(prefix, "gauge"), (f"{prefix}_count", "counter")]
    percent = family("kafka.network", "SocketServer", "NetworkProcessorAvgIdlePercent", Kind.GAUGE)
    prefix = "kafka_network_socketserver_networkprocessoravgidle"
    assert [name for name, _ in names_of(percent)] == [f"{prefix}_percent", f"{prefix}percent"]
    dashed = family("kafka.server", "socket-server-metrics", "connection-count", Kind.GAUGE)
    assert names_of(dashed) == [("kafka_server_socket_server_metrics_connection_count", "gauge")]
    assert names_of(family("", "", "process_open_fds", Kind.GAUGE)) == [("process_open_fds", "gauge")]


def test_a_label_without_a_value_is_left_out() -> None:
    topics = family("kafka.server", "BrokerTopicMetrics", "BytesInPerSec", Kind.METER, (("",), 3), (("a",), 1), labels=("topic",))
    assert "".join(render([topics])).splitlines() == [
        "# HELP kafka_server_brokertopicmetrics_bytesin_total A meaning.",
        "# TYPE kafka_server_brokertopicmetrics_bytesin_total counter",
        "kafka_server_brokertopicmetrics_bytesin_total 3",
        'kafka_server_brokertopicmetrics_bytesin_total{topic="a"} 1',
    ]


def test_a_histogram_is_quantiles_and_a_count() -> None:
    read = (("Produce",), Distribution(7, (1.0, 1.5, 2.0, 3.0, 4.0, 5.25)))
    lines = "".join(render([family("kafka.network", "RequestMetrics", "LocalTimeMs", Kind.HISTOGRAM, read, labels=("request",))]))
    name = "kafka_network_requestmetrics_localtimems"
    assert [line for line in lines.splitlines() if not line.startswith("#")] == [
        f'{name}{{request="Produce",quantile="0.50"}} 1',
        f'{name}{{request="Produce",quantile="0.75"}} 1.5',
        f'{name}{{request="Produce",quantile="0.95"}} 2',
        f'{name}{{request="Produce",quantile="0.98"}} 3',
        f'{name}{{request="Produce",quantile="0.99"}} 4',
        f'{name}{{request="Produce",quantile="0.999"}} 5.25',
        f'{name}_count{{request="Produce"}} 7',
    ]


def test_a_family_that_fails_takes_no_other_away() -> None:
    def failing() -> Iterator[Series]:
        yield (), 1
        raise RuntimeError("a mistake")

    broken = Family("", "", "broken", Kind.GAUGE, "A meaning.", failing)
    text = "".join(render([broken, family("", "", "whole", Kind.GAUGE, ((), 2))]))
    assert [line for line in text.splitlines() if not line.startswith("#")] == ["broken 1", "whole 2"]


def test_label_values_are_escaped() -> None:
    text = "".join(render([family("", "", "x", Kind.GAUGE, (('a"b\\c\nd',), True), labels=("name",))]))
    assert text.splitlines()[2] == 'x{name="a\\"b\\\\c\\nd"} 1'


def test_many_series_come_in_slices() -> None:
    many = family("", "", "x", Kind.GAUGE, *(((str(index),), index) for index in range(1200)), labels=("name",))
    slices = [piece for piece in render([many]) if piece]
    assert ([piece.count("\n") for piece in slices], len("".join(slices).splitlines())) == ([LINES_PER_SLICE, LINES_PER_SLICE, 202], 1202)


def test_what_clients_have_pushed_has_its_own_names() -> None:
    pushed = [
        Pushed("org.apache.kafka.producer.record.send.total", "counter", 5.0, {"client_id": "a", "client.software": "x"}),
        Pushed("org.apache.kafka.consumer.lag", "gauge", 0.5, {"client_id": "b"}),
        Pushed("org.apache.kafka.producer.record.send.total", "counter", 6.0, {"client_id": 'c"'}),
    ]
    assert [line for line in "".join(render_received(pushed, ())).splitlines() if not line.startswith("# HELP")] == [
        "# TYPE org_apache_kafka_producer_record_send_total counter",
        'org_apache_kafka_producer_record_send_total{client_id="a",client_software="x"} 5',
        'org_apache_kafka_producer_record_send_total{client_id="c\\""} 6',
        "# TYPE org_apache_kafka_consumer_lag gauge",
        'org_apache_kafka_consumer_lag{client_id="b"} 0.5',
    ]


def test_what_clients_have_pushed_does_not_take_the_names_of_the_broker() -> None:
    names = ("process.cpu", "process_cpu", "client_process_cpu", "up")
    pushed = [Pushed(name, "counter", value, {"client_id": "a"}) for value, name in enumerate(names)]
    assert [line for line in "".join(render_received(pushed, {"process_cpu"})).splitlines() if not line.startswith("# HELP")] == [
        "# TYPE client_process_cpu counter",
        'client_process_cpu{client_id="a"} 2',
        "# TYPE up counter",
        'up{client_id="a"} 3',
    ]
