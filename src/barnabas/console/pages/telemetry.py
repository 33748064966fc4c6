"""Client telemetry (KIP-714): which clients push which metrics, and where the brokers' metrics are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from barnabas.client.admin.cluster.config_entries import ConfigResource, ConfigResourceType
from barnabas.client.admin.cluster.configs import AlterConfigOp, OpType
from barnabas.console.failures import failure_of, sentence
from barnabas.console.web.routes import get, post
from barnabas.console.web.visit import Visit
from barnabas.errors import KafkaError

ROWS_MAX: Final = 200
NAME_MAX: Final = 249
INTERVAL_DEFAULT_MS: Final = 300_000
INTERVAL_MIN_MS: Final = 100
INTERVAL_MAX_MS: Final = 3_600_000
SELECTORS: Final = (
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
EXAMPLES: Final = (
    ("*", "every metric of the client"),
    ("org.apache.kafka.producer.", "the producer: rates, latencies, batches"),
    ("org.apache.kafka.consumer.", "the consumer: lag, fetches, rebalances"),
    ("org.apache.kafka.admin.client.", "the admin client"),
)


@dataclass(frozen=True, slots=True)
class TelemetrySubscription:
    """A subscription: the name, and its three settings as texts."""

    name: str
    metrics: str
    interval_ms: str
    match: str


async def telemetry(visit: Visit, error: str | None = None, entered: Mapping[str, str] | None = None, status: int = 200) -> Response:
    unknown: str | None = None
    rows: list[TelemetrySubscription] = []
    total = 0
    try:
        names = sorted(one.name for one in await visit.cluster.admin.list_client_metrics_resources())
        total = len(names)
        rows = await _described(visit, names[:ROWS_MAX])
    except KafkaError as refusal:
        unknown = (
            f"{sentence(refusal)} Apache Kafka offers client telemetry with KRaft since 3.7; listing needs DescribeConfigs on the cluster."
        )
    edited = next((one for one in rows if one.name == visit.argument("edit")), None)
    form = (
        {"name": edited.name, "metrics": edited.metrics, "interval": edited.interval_ms, "match": edited.match}
        if edited is not None
        else {}
    )
    cluster = visit.config.cluster(visit.cluster_name)
    return visit.page(
        "telemetry.html",
        status=status,
        rows=rows,
        total=total,
        unknown=unknown,
        error=error,
        entered=dict(entered) if entered is not None else form,
        edited=edited,
        selectors=SELECTORS,
        examples=EXAMPLES,
        interval=INTERVAL_DEFAULT_MS,
        metrics_urls=cluster.metrics if cluster is not None else (),
    )


async def change(visit: Visit) -> Response:
    form = await visit.form()
    name = form.get("name", "").strip()
    settings = {"metrics": form.get("metrics", ""), "interval.ms": form.get("interval", ""), "match": form.get("match", "")}
    settings = {key: ",".join(part.strip() for part in re.split(r"[,\n]", value) if part.strip()) for key, value in settings.items()}
    if wrong := _wrong(name, settings):
        return await telemetry(visit, wrong, form, 422)
    changes = [AlterConfigOp(key, value, OpType.SET if value else OpType.DELETE) for key, value in settings.items()]
    try:
        (await visit.cluster.admin.incremental_alter_configs({_resource(name): changes})).all()
    except KafkaError as refusal:
        return await telemetry(visit, sentence(refusal), form, failure_of(refusal).status)
    return visit.changed(f"Clients push by the subscription {name}.", "/telemetry")


async def delete(visit: Visit) -> Response:
    name = (await visit.form()).get("name", "")
    if not name:
        return await telemetry(visit, "Choose a subscription.", None, 422)
    changes = [AlterConfigOp(key, None, OpType.DELETE) for key in ("metrics", "interval.ms", "match")]
    try:
        (await visit.cluster.admin.incremental_alter_configs({_resource(name): changes})).all()
    except KafkaError as refusal:
        return await telemetry(visit, sentence(refusal), None, failure_of(refusal).status)
    return visit.changed(f"The subscription {name} is deleted.", "/telemetry")


async def _described(visit: Visit, names: list[str]) -> list[TelemetrySubscription]:
    if not names:
        return []
    configs = (await visit.cluster.admin.describe_configs([_resource(name) for name in names])).successes
    rows = []
    for resource, config in configs.items():
        values = {key: config[key].value or "" if key in config else "" for key in ("metrics", "interval.ms", "match")}
        rows.append(TelemetrySubscription(resource.name, values["metrics"], values["interval.ms"], values["match"]))
    return rows


def _resource(name: str) -> ConfigResource:
    return ConfigResource(ConfigResourceType.CLIENT_METRICS, name)


def _wrong(name: str, settings: Mapping[str, str]) -> str | None:
    if not name or len(name) > NAME_MAX:
        return "Enter a name for the subscription."
    if not settings["metrics"]:
        return "Enter the metrics: the beginnings of their names, or * for all."
    interval = settings["interval.ms"]
    if interval and not (
        interval.isascii() and interval.isdigit() and len(interval) < 9 and INTERVAL_MIN_MS <= int(interval) <= INTERVAL_MAX_MS
    ):
        return f"The interval must be a number of ms from {INTERVAL_MIN_MS} to {INTERVAL_MAX_MS}, or empty for {INTERVAL_DEFAULT_MS}."
    for part in filter(None, settings["match"].split(",")):
        selector, equals, pattern = part.partition("=")
        if not equals or selector.strip() not in SELECTORS or not pattern.strip():
            known = ", ".join(SELECTORS)
            return f"{part[:100]} selects no clients. Write a selector and a pattern, such as client_id=orders.*; there are {known}."
    return None


ROUTES: Final = (get("/telemetry", telemetry), post("/telemetry", change), post("/telemetry/delete", delete))
