from __future__ import annotations

import struct

import pytest

from barnabas.broker.scheduling.turns import at_once
from barnabas.broker.telemetry import otlp_reader
from barnabas.broker.telemetry.otlp_reader import ReceivedPoint, ReceivedPoints, read_metrics
from barnabas.client.metrics.otlp import CUMULATIVE, DELTA, Point, metrics_data
from barnabas.errors import InvalidRecord


def read(data: bytes) -> ReceivedPoints:
    return at_once(read_metrics(data))


def message(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varint(len(content)) + content


def varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 0x7F | 0x80]) + varint(value >> 7)


def metrics(*of_metrics: bytes) -> bytes:
    return message(1, message(2, b"".join(message(2, of_metric) for of_metric in of_metrics)))


def test_nothing_is_read_as_nothing() -> None:
    assert read(b"") == ReceivedPoints()


def test_what_our_clients_write_is_read() -> None:
    points = [
        Point("gauge", 1.5, 10, {"topic": "t", "partition": "0"}),
        Point("whole", -7, 10, {}),
        Point("delta", 3.0, 10, {}, 5, DELTA),
        Point("total", 2**62, 10, {}, 5, CUMULATIVE),
    ]
    received = read(metrics_data(points, {"client_rack": "r1", "group_id": "ü"}))
    assert received.resource == {"client_rack": "r1", "group_id": "ü"}
    assert received.points == [
        ReceivedPoint("gauge", (("partition", "0"), ("topic", "t")), 1.5, False, False),
        ReceivedPoint("whole", (), -7.0, False, False),
        ReceivedPoint("delta", (), 3.0, True, True),
        ReceivedPoint("total", (), float(2**62), True, False),
    ]


@pytest.mark.parametrize(("holder", "attributes"), [(9, 9), (10, 1), (11, 7)])
def test_a_histogram_or_a_summary_is_its_count_and_its_sum(holder: int, attributes: int) -> None:
    label = message(attributes, message(1, b"k") + message(2, message(1, b"v")))
    point = label + b"\x21" + struct.pack("<Q", 3) + b"\x29" + struct.pack("<d", 4.5)
    received = read(metrics(message(1, b"h") + message(holder, message(1, point) + b"\x10\x01")))
    is_delta = holder != 11
    assert received.points == [
        ReceivedPoint("h.count", (("k", "v"),), 3.0, True, is_delta),
        ReceivedPoint("h.sum", (("k", "v"),), 4.5, True, is_delta),
    ]


def test_labels_that_are_no_texts_are_read_as_texts() -> None:
    values = [b"\x10\x01", b"\x18\x05", b"\x21" + struct.pack("<d", 0.5), message(5, b"")]
    labels = b"".join(message(7, message(1, b"k%d" % number) + message(2, value)) for number, value in enumerate(values))
    (point,) = read(metrics(message(1, b"g") + message(5, message(1, labels)))).points
    assert point.labels == (("k0", "true"), ("k1", "5"), ("k2", "0.5"), ("k3", ""))


def test_fields_that_are_unknown_are_skipped() -> None:
    point = b"\x45\x00\x00\x00\x00" + b"\x31" + struct.pack("<q", 9)  # flags of 4 bytes, then the value
    unknown = message(12, b"a map") + b"\x60\x07"
    assert read(metrics(message(1, b"g") + unknown + message(5, unknown + message(1, point)))).points[0].value == 9.0


@pytest.mark.parametrize(
    "data",
    [
        b"garbage that is no protobuf",
        b"\x0a\x05",  # ends before its content
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # a size of more than 64 bits
        b"\x00\x00",  # field 0
        b"\x0b",  # a group
        metrics(message(1, b"\xff")),  # a name that is not UTF-8
        metrics(message(1, b"g") + message(5, message(1, b"\x31\x00"))),  # half a number
    ],
)
def test_what_is_no_metrics_data_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidRecord):
        read(data)


def test_points_beyond_the_bound_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_reader, "POINTS_MAX", 500)
    received = read(metrics_data([Point(f"m{number}", number, 1, {}) for number in range(501)], {}) + b"\x0b" * 10_000)
    assert (len(received.points), received.dropped) == (500, 1)


def test_the_temporality_applies_to_the_points_before_it() -> None:
    point = message(1, b"\x21" + struct.pack("<d", 1.0))
    assert [point.is_delta for point in read(metrics(message(1, b"s") + message(7, point + b"\x10\x01"))).points] == [True]


MANY = 65_000
EMPTY = message(1, b"")  # of MetricsData: ResourceMetrics; of a Gauge: a point


@pytest.mark.parametrize(
    ("data", "is_refused"),
    [
        pytest.param(EMPTY * MANY, False, id="ResourceMetrics without content"),
        pytest.param(b"\x10\x01" * MANY, False, id="unknown fields of MetricsData"),
        pytest.param(message(1, b"\x20\x01" * MANY), False, id="unknown fields of ResourceMetrics"),
        pytest.param(message(1, message(2, b"\x20\x01" * MANY)), False, id="unknown fields of ScopeMetrics"),
        pytest.param(message(1, message(2, EMPTY * MANY)), False, id="scopes"),
        pytest.param(metrics(b"\x10\x01" * MANY), False, id="unknown fields of a Metric"),
        pytest.param(metrics(*[b""] * MANY), False, id="metrics without points"),
        pytest.param(metrics(message(5, EMPTY * MANY)), False, id="points of a gauge"),
        pytest.param(metrics(message(7, EMPTY * MANY)), False, id="points of a sum"),
        pytest.param(metrics(message(7, b"\x18\x01" * MANY)), False, id="unknown fields of a sum"),
        pytest.param(metrics(message(9, EMPTY * MANY)), False, id="points of a histogram"),
        pytest.param(message(1, message(1, EMPTY * 100)) * 600, False, id="resources with many attributes"),
        pytest.param(message(1, message(1, EMPTY * MANY)), True, id="attributes of a resource"),
        pytest.param(message(1, message(1, b"\x10\x01" * MANY)), True, id="unknown fields of a resource"),
        pytest.param(metrics(message(5, message(1, message(7, b"") * MANY))), True, id="labels of a point"),
        pytest.param(metrics(message(5, message(1, b"\x40\x01" * MANY))), True, id="unknown fields of a point"),
        pytest.param(metrics(message(11, message(1, message(6, b"") * MANY))), True, id="quantiles of a summary"),
        pytest.param(metrics(message(5, message(1, message(7, b"\x18\x01" * MANY)))), True, id="unknown fields of a label"),
        pytest.param(metrics(message(5, message(1, message(7, message(2, b"\x18\x01" * MANY))))), True, id="values of a label"),
    ],
)
def test_the_work_of_a_slice_is_bounded(data: bytes, is_refused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers_read = 0
    varint_of = otlp_reader._varint

    def counting(data: bytes, at: int, end: int) -> tuple[int, int]:
        nonlocal numbers_read
        numbers_read += 1
        return varint_of(data, at, end)

    monkeypatch.setattr(otlp_reader, "_varint", counting)
    of_slices = []
    refusal = ""
    work = read_metrics(data)
    while True:
        numbers_read = 0
        try:
            next(work)
        except StopIteration:
            break
        except InvalidRecord as error:
            refusal = str(error)
            break
        finally:
            of_slices.append(numbers_read)
    fields_max = otlp_reader.FIELDS_PER_SLICE + otlp_reader.FIELDS_PER_LEAF_MAX
    assert max(of_slices) <= 2 * fields_max  # a field has one number or two
    assert ("too many fields" in refusal) == is_refused


def test_the_fields_of_a_push_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_reader, "FIELDS_MAX", 1000)
    assert read(EMPTY * 1000) == ReceivedPoints()
    with pytest.raises(InvalidRecord, match="too many fields"):
        read(EMPTY * 1001)


def test_as_many_attributes_as_the_bound_are_read() -> None:
    attributes = [message(1, b"k%d" % number) + message(2, message(1, b"v")) for number in range(otlp_reader.ATTRIBUTES_MAX)]
    resource = message(1, b"".join(message(1, attribute) for attribute in attributes))
    point = message(1, b"".join(message(7, attribute) for attribute in attributes))
    scope = message(2, message(2, message(1, b"g") + message(5, point)))
    received = read(message(1, resource + scope) + message(1, message(1, message(1, message(1, b"another")))))
    assert len(received.points[0].labels) == len(received.resource) == otlp_reader.ATTRIBUTES_MAX


def test_long_texts_are_cut_and_the_points_of_a_histogram_share_their_names() -> None:
    name = "€" * 100_000
    received = read(metrics(message(1, name.encode()) + message(9, EMPTY * 2)))
    assert len({id(point.name) for point in received.points}) == 2
    assert {point.name for point in received.points} == {f"{name[: otlp_reader.TEXT_BYTES_MAX // 3]}.{part}" for part in ("count", "sum")}
