"""The MBeans of a Kafka as its JMX agent shows them, and the metrics of our brokers under the same names.

A name is `kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec`, and a series of it has labels: `…{topic=orders}`. The MBeans of Kafka's
own metrics, such as `socket-server-metrics`, have no `name`: there each attribute is a metric.
"""

from __future__ import annotations

import re
import urllib.request
from dataclasses import dataclass, field
from typing import Any, Final, cast

from barnabas.broker.config.metrics_listener import JMX_EXPORTER
from barnabas.broker.exposition.metrics_listener import registry
from barnabas.broker.exposition.prometheus_text import names_of
from barnabas.metrics.registry import Family, Kind

# Every attribute of every MBean is a sample of one metric.
AGENT_CONFIG: Final = """
includeObjectNames: ["kafka.*:*"]
rules:
- pattern: '^(kafka[a-z.]*)<(.*)><>([A-Za-z0-9-]+)'
  name: mbean
  help: mbean
  type: UNTYPED
  labels: {domain: $1, properties: $2, attribute: $3}
"""
OWN: Final = "attribute"  # the kind of Kafka's own metrics, whose MBeans do not say what they are
_SAMPLE: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_PROPERTY: Final = re.compile(r'([\w-]+)=("(?:[^"\\]|\\.)*"|[^,]*)(?:, |$)')


@dataclass
class Beans:
    """`kinds` and `labels` are by name, `values` by series: the value of a gauge, and the count of anything else."""

    kinds: dict[str, str] = field(default_factory=dict)
    labels: dict[str, list[str]] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, kind: str, labels: dict[str, str], value: float) -> None:
        self.kinds[name] = kind
        if len(labels) >= len(self.labels.get(name, [])):
            self.labels[name] = sorted(labels)
        self.values[series(name, labels)] = value


def series(name: str, labels: dict[str, str]) -> str:
    return name if not labels else f"{name}{{{','.join(f'{label}={labels[label]}' for label in sorted(labels))}}}"


def beans_of_kafka(url: str) -> Beans:
    """What the agent shows."""
    attributes: dict[tuple[str, str], dict[str, float]] = {}
    for name, labels, value in samples(text_of(url)):
        if name == "mbean":
            attributes.setdefault((labels["domain"], labels["properties"]), {})[labels["attribute"]] = value
    beans = Beans()
    for (domain, text), values in attributes.items():
        properties = {key: value.strip('"') for key, value in _PROPERTY.findall(text)}
        kind_of_bean, name = properties.pop("type"), properties.pop("name", None)
        prefix = f"{domain}:type={kind_of_bean},name="
        if name is None:
            for attribute, value in values.items():
                beans.add(prefix + attribute, OWN, properties, value)
        elif "Value" in values:
            beans.add(prefix + name, Kind.GAUGE.value, properties, values["Value"])
        elif "Count" in values:
            is_histogram = any(attribute.endswith("Percentile") for attribute in values)
            beans.add(prefix + name, (Kind.HISTOGRAM if is_histogram else Kind.METER).value, properties, values["Count"])
    return beans


def beans_of_ours(url: str) -> Beans:
    """What /metrics of a broker of ours shows, in the dialect of jmx_exporter."""
    shown: dict[str, Family] = {}
    beans = Beans()
    for family in our_families():
        shown[names_of(family)[-1][0] if family.kind is Kind.HISTOGRAM else names_of(family)[0][0]] = family
    for name, labels, value in samples(text_of(url)):
        shown_bean = shown.get(name)
        if shown_bean is not None:
            beans.add(name_of(shown_bean), shown_bean.kind.value, labels, value)
    return beans


def our_families() -> list[Family]:
    """Those with an MBean. They cannot be read: there is no broker behind them."""
    return [family for family in registry(cast("Any", None), (JMX_EXPORTER,)) if family.group]


def name_of(family: Family) -> str:
    return f"{family.group}:type={family.type},name={family.name}"


def text_of(url: str) -> str:
    with urllib.request.urlopen(f"{url}/metrics", timeout=60) as response:
        text: str = response.read().decode()
    return text


def samples(text: str) -> list[tuple[str, dict[str, str], float]]:
    """Name, labels and value of each line."""
    differing = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            head, _, value = line.rpartition(" ")
            name, _, rest = head.partition("{")
            labels = {label: quoted.replace('\\"', '"').replace("\\\\", "\\") for label, quoted in _SAMPLE.findall(rest)}
            differing.append((name, labels, float(value)))
    return differing
