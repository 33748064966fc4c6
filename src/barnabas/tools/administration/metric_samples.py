"""Samples in the text format of Prometheus: parsed, chosen by a filter, and compared with an earlier read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

_SAMPLE: Final = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? +(\S+)(?: +\S+)?")
_LABEL: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
_GLOB: Final = re.compile(r"[a-zA-Z0-9_:*?]+")
_ESCAPES: Final = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}
_COUNTED: Final = ("_count", "_sum", "_bucket")  # of summaries and histograms

Filter = Callable[["Sample"], bool]


@dataclass(frozen=True)
class Sample:
    """`labels` is their text, as it was read."""

    name: str
    labels: str
    value: float
    is_counter: bool

    @property
    def series(self) -> str:
        return f"{self.name}{{{self.labels}}}" if self.labels else self.name

    def label_values(self) -> dict[str, str]:
        return {
            name: re.sub(r"\\.", lambda escape: _ESCAPES.get(escape[0], escape[0]), value) for name, value in _LABEL.findall(self.labels)
        }


def parse(text: str) -> list[Sample]:
    """Raises ValueError for a line that is not of the format."""
    types: dict[str, str] = {}
    samples: list[Sample] = []
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(maxsplit=3)
            types[name] = kind
        elif line and not line.startswith("#"):
            match = _SAMPLE.fullmatch(line)
            if match is None:
                raise ValueError(f"not a line of metrics: {line[:100]}")
            name, labels, value = match.groups()
            samples.append(Sample(name, labels or "", float(value), _is_counter(name, types)))
    return samples


def _is_counter(name: str, types: Mapping[str, str]) -> bool:
    if name in types:
        return types[name] == "counter"
    return any(name.endswith(suffix) and types.get(name.removesuffix(suffix)) in ("summary", "histogram") for suffix in _COUNTED)


def filter_of(pattern: str) -> Filter:
    """A pattern of letters, digits, _, * and ? is compared with the whole name; any other is a regular expression that is searched in the
    name with its labels. Raises ValueError for one that is neither."""
    if _GLOB.fullmatch(pattern):
        return lambda sample: fnmatchcase(sample.name, pattern)
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern} is neither a name with * and ? nor a regular expression: {error}") from None
    return lambda sample: expression.search(sample.series) is not None


def chosen(samples: Iterable[Sample], filters: Sequence[Filter]) -> list[Sample]:
    """The samples that any filter takes, or all if there is no filter."""
    return [sample for sample in samples if not filters or any(takes(sample) for takes in filters)]


def rates(before: Mapping[str, float], samples: Iterable[Sample], seconds: float) -> dict[str, float]:
    """The rate per second of each counter that both reads have, by its series. A counter that fell began again from 0."""
    per_second: dict[str, float] = {}
    for sample in samples:
        earlier = before.get(sample.series)
        if sample.is_counter and earlier is not None and seconds > 0:
            per_second[sample.series] = (sample.value - earlier if sample.value >= earlier else sample.value) / seconds
    return per_second


def number(value: float) -> str:
    return f"{value:.0f}" if value == value and abs(value) < 1e15 and value == int(value) else f"{value:g}"
