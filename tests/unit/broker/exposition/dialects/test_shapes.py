from __future__ import annotations

from typing import Any, cast

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.broker.config.metrics_listener import CONFLUENT, DIALECTS, JMX_EXPORTER, STRIMZI_REPORTER
from barnabas.broker.exposition.dialects.shapes import shaped
from barnabas.broker.exposition.metrics_listener import registry
from barnabas.broker.exposition.prometheus_text import LabelTexts, render_shapes
from barnabas.config_def import InvalidConfig
from barnabas.metrics.registry import Distribution, Family, Kind, Series


def family(group: str, kind_of: str, name: str, kind: Kind, *series: Series, labels: tuple[str, ...] = ()) -> Family:
    return Family(group, kind_of, name, kind, "A meaning.", lambda: series, labels)


def lines(of: Family, *dialects: str) -> list[str]:
    text = "".join(render_shapes(shaped([of], dialects), LabelTexts()))
    return [line for line in text.splitlines() if not line.startswith("# HELP")]


METER = family("kafka.server", "BrokerTopicMetrics", "BytesInPerSec", Kind.METER, (("a",), 3), labels=("topic",))
TIMES = family(
    "kafka.network",
    "RequestMetrics",
    "TotalTimeMs",
    Kind.HISTOGRAM,
    (("Produce",), Distribution(7, (1.0, 1.5, 2.0, 3.0, 4.0, 5.25))),
    labels=("request",),
)
SOCKETS = family(
    "kafka.server",
    "socket-server-metrics",
    "connection-creation-total",
    Kind.METER,
    (("PLAINTEXT", "0"), 4),
    labels=("listener", "networkProcessor"),
)


def test_a_meter_has_a_name_in_each_dialect() -> None:
    prefix = "kafka_server_brokertopicmetrics_bytesin"
    assert lines(METER, JMX_EXPORTER, STRIMZI_REPORTER, CONFLUENT) == [
        f"# TYPE {prefix}_total counter",
        f'{prefix}_total{{topic="a"}} 3',
        f"# TYPE {prefix}persec_total counter",
        f'{prefix}persec_total{{topic="a"}} 3',
        f"# TYPE {prefix}persec untyped",
        f'{prefix}persec{{topic="a"}} 3',
    ]


def test_a_histogram_is_a_summary_for_strimzi_and_has_its_count_without_a_quantile_for_confluent() -> None:
    name = "kafka_network_requestmetrics_totaltimems"
    strimzi = lines(TIMES, STRIMZI_REPORTER)
    assert strimzi[:2] == [f"# TYPE {name} summary", f'{name}{{request="Produce",quantile="0.5"}} 1']
    assert strimzi[-1] == f'{name}_count{{request="Produce"}} 7'
    confluent = lines(TIMES, CONFLUENT)
    assert confluent[:2] == [f"# TYPE {name} untyped", f'{name}{{request="Produce",quantile="0.50"}} 1']
    assert confluent[-1] == f'{name}{{request="Produce"}} 7'


def test_a_name_that_two_dialects_have_is_that_of_the_first() -> None:
    name = "kafka_network_requestmetrics_totaltimems"
    assert [line for line in lines(TIMES, STRIMZI_REPORTER, JMX_EXPORTER) if line.startswith("#")] == [f"# TYPE {name} summary"]
    both = [line for line in lines(TIMES, JMX_EXPORTER, STRIMZI_REPORTER, CONFLUENT) if line.startswith("#")]
    assert both == [f"# TYPE {name} gauge", f"# TYPE {name}_count counter"]


def test_metrics_of_the_socket_server_and_labels_in_lower_case() -> None:
    assert lines(SOCKETS, STRIMZI_REPORTER)[1] == (
        'kafka_server_socket_server_metrics_connection_creation{listener="PLAINTEXT",networkProcessor="0"} 4'
    )
    assert lines(SOCKETS, CONFLUENT) == [
        "# TYPE kafka_server_socketservermetrics_connection_creation_total gauge",
        'kafka_server_socketservermetrics_connection_creation_total{listener="PLAINTEXT",network_processor="0"} 4',
    ]
    waiting = family(
        "kafka.server", "DelayedOperationPurgatory", "PurgatorySize", Kind.GAUGE, (("Fetch",), 1), labels=("delayedOperation",)
    )
    assert lines(waiting, CONFLUENT)[1] == 'kafka_server_delayedoperationpurgatory_purgatorysize{delayedoperation="Fetch"} 1'
    idle = family("kafka.server", "KafkaRequestHandlerPool", "RequestHandlerAvgIdlePercent", Kind.GAUGE, ((), 0.5))
    assert lines(idle, CONFLUENT)[1] == "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total 0.5"


def test_no_name_stands_twice_with_all_dialects() -> None:
    names = [name for _, shape in shaped(registry(cast("Any", None), DIALECTS), DIALECTS) for name in shape.sample_names]
    assert len(names) == len(set(names))
    assert {
        "kafka_server_brokertopicmetrics_bytesin_total",
        "kafka_server_brokertopicmetrics_bytesinpersec_total",
        "kafka_server_brokertopicmetrics_bytesinpersec",
        "redpanda_kafka_request_bytes_total",
        "kminion_kafka_consumer_group_topic_lag",
        "kafka_consumergroup_lag_seconds",
    } <= set(names)


def test_an_unknown_dialect_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidConfig) as refused:
        BrokerConfig.from_properties({"metrics.dialects": "klingon"})
    assert "metrics.dialects" in str(refused.value)
    assert all(dialect in str(refused.value) for dialect in DIALECTS)


def test_label_texts_are_bounded() -> None:
    texts = LabelTexts()
    for number in range(LabelTexts.TEXTS_MAX + 1):
        texts.add(("group",), (str(number),))
    assert texts.of(("group",)) == {(str(LabelTexts.TEXTS_MAX),): f'{{group="{LabelTexts.TEXTS_MAX}"}}'}
