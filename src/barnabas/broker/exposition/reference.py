"""The table of all metrics, for docs/metrics.md: `python -m barnabas.broker.exposition.reference docs/metrics.md` writes it there."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, cast

from barnabas.broker.config.metrics_listener import JMX_EXPORTER, KAFKA_EXPORTER, KMINION, REDPANDA
from barnabas.broker.exposition.metrics_listener import registry
from barnabas.broker.exposition.prometheus_text import names_of
from barnabas.metrics.registry import Family, Kind

BEGIN: Final = "<!-- The table is generated: python -m barnabas.broker.exposition.reference docs/metrics.md -->\n"
_DIALECTS: Final = (JMX_EXPORTER, KAFKA_EXPORTER, REDPANDA, KMINION)  # the others give the MBeans of the first other names
_HEAD: Final = "\n| metric | labels | in Kafka | what it is |\n|---|---|---|---|\n"


def table() -> str:
    """All families, in the order of their exposition. They are not read, so there need not be a broker."""
    return _HEAD + "".join(map(_row, registry(cast("Any", None), _DIALECTS)))


def _row(family: Family) -> str:
    names = "<br>".join(f"`{name}`" for name, _ in names_of(family))
    labels = list(family.labels) + (["quantile"] if family.kind is Kind.HISTOGRAM else [])
    bean = f"`{family.group}:type={family.type},name={family.name}`" if family.group else ""
    return f"| {names} | {', '.join(f'`{label}`' for label in labels)} | {bean} | {family.meaning} |\n"


def main(arguments: Sequence[str]) -> int:
    page = Path(arguments[0])
    page.write_text(page.read_text().partition(BEGIN)[0] + BEGIN + table())
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
