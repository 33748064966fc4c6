"""The text format of Prometheus, in the names of the rules that Kafka's dashboards expect: `dialects/shapes.py` has them.

By the rules of jmx_exporter's kafka-2_0_0.yml and of Strimzi, `kafka.server` `BrokerTopicMetrics` `BytesInPerSec` is
`kafka_server_brokertopicmetrics_bytesin_total`. A label without a value is left out: so the series of all topics has no `topic`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from barnabas.broker.config.metrics_listener import JMX_EXPORTER
from barnabas.broker.exposition.dialects.shapes import Content, Shape, Shaped, jmx_shapes, shaped
from barnabas.metrics.registry import Distribution, Family, Labels, Series

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
LINES_PER_SLICE: Final = 500  # about a millisecond

_log = logging.getLogger(__name__)


def names_of(family: Family) -> list[tuple[str, str]]:
    """The names that jmx_exporter's rules give a family, and their types in the text format."""
    return [(shape.name, shape.type) for shape in jmx_shapes(family)]


class LabelTexts:
    """The texts of labels, `{topic="orders",partition="0"}`, made once for all families with the same label names and all scrapes.

    They are forgotten when there are TEXTS_MAX of a tuple of names, so that topics and groups that are gone take no memory."""

    TEXTS_MAX: Final = 50_000

    def __init__(self) -> None:
        self._by_names: dict[tuple[str, ...], dict[Labels, str]] = {}

    def of(self, names: tuple[str, ...]) -> dict[Labels, str]:
        """The texts that are known, by the values of the labels."""
        return self._by_names.setdefault(names, {})

    def add(self, names: tuple[str, ...], values: Labels) -> str:
        texts = self.of(names)
        if len(texts) >= self.TEXTS_MAX:
            texts.clear()
        text = texts[values] = _braced(label_text(names, values))
        return text


def render(families: Iterable[Family]) -> Iterator[str]:
    """As `render_shapes`, under the names of jmx_exporter."""
    return render_shapes(shaped(families, (JMX_EXPORTER,)), LabelTexts())


def render_shapes(shapes: Iterable[Shaped], texts: LabelTexts) -> Iterator[str]:
    """The text, in slices of about a millisecond: LINES_PER_SLICE lines, or fewer series if they take longer to read. There is an empty one
    after each name, because reading even one number may take a millisecond: it may be a count over all partitions."""
    lines: list[str] = []
    for family, shape in shapes:
        lines.append(f"# HELP {shape.name} {_help(family.meaning)}")
        lines.append(f"# TYPE {shape.name} {shape.type}")
        per_slice = min(LINES_PER_SLICE, family.series_per_slice)
        pick = _value_lines if shape.content is Content.VALUE else _distribution_lines
        try:  # an error of one family must not take the others away
            series = iter(family.read())
            while pick(shape, islice(series, max(1, min(per_slice, LINES_PER_SLICE - len(lines)))), texts, lines):
                if len(lines) >= LINES_PER_SLICE or (lines and per_slice < LINES_PER_SLICE):
                    yield "\n".join(lines) + "\n"
                    lines.clear()
        except Exception:
            _log.exception("Reading the metric %s %s %s failed", family.group, family.type, family.name)
        yield ""
    if lines:
        yield "\n".join(lines) + "\n"


def _value_lines(shape: Shape, series: Iterable[Series], texts: LabelTexts, lines: list[str]) -> bool:
    """Adds the lines of these series; False if there was none. This is where the time of a scrape goes: it calls as little as it can."""
    name, names = shape.name, shape.labels
    known = texts.of(names)
    is_any = False
    for labels, value in series:
        is_any = True
        text = known.get(labels)
        if text is None:
            text = texts.add(names, labels)
        if type(value) is int:
            lines.append(f"{name}{text} {value}")
        elif not isinstance(value, Distribution):
            lines.append(f"{name}{text} {number(value)}")
    return is_any


def _distribution_lines(shape: Shape, series: Iterable[Series], texts: LabelTexts, lines: list[str]) -> bool:
    is_any = False
    for labels, value in series:
        is_any = True
        if isinstance(value, Distribution):
            samples = _of_distribution(shape, label_text(shape.labels, labels), value)
            lines += [f"{name_and_labels} {number(sample)}" for name_and_labels, sample in samples]
    return is_any


def _of_distribution(shape: Shape, text: str, value: Distribution) -> Iterator[tuple[str, float]]:
    content = shape.content
    if content is not Content.COUNT:
        comma = "," if text else ""
        for quantile, at in zip(shape.quantiles, value.quantiles, strict=True):
            yield f'{shape.name}{{{text}{comma}quantile="{quantile}"}}', at
    if content is not Content.QUANTILES:
        yield f"{shape.name}{'_count' if content is Content.SUMMARY else ''}{_braced(text)}", value.count


def label_text(names: tuple[str, ...], values: Labels) -> str:
    """`name="value"` for each label that has a value, with commas between them."""
    return ",".join([f'{name}="{escaped(value)}"' for name, value in zip(names, values, strict=True) if value])


def escaped(value: str) -> str:
    """A label value between quotes."""
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return value


def number(value: float) -> str:
    if isinstance(value, int):  # True is a 1
        return str(int(value))
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _braced(labels: str) -> str:
    return f"{{{labels}}}" if labels else ""


def _help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")
