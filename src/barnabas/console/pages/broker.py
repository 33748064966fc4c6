"""One broker: its load and log directories, its settings, and the levels of its loggers, which change at run time."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from barnabas.client.admin.cluster.config_entries import ConfigResource, ConfigResourceType
from barnabas.client.admin.cluster.configs import AlterConfigOp, OpType
from barnabas.console.cluster.broker_load import broker_loads
from barnabas.console.cluster.settings_cache import KnownConfig
from barnabas.console.cluster.settings_list import settings_of
from barnabas.console.cluster.snapshot import BrokerSnapshot, ClusterSnapshot
from barnabas.console.failures import NotThere, failure_of, sentence
from barnabas.console.web.routes import get, post, segment
from barnabas.console.web.visit import Visit
from barnabas.errors import KafkaError

LEVELS: Final = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF")
_VALUE_MAX: Final = 100_000


async def load(visit: Visit) -> Response:
    snapshot, broker = await _broker(visit)
    loads = {load.broker.id: load for load in broker_loads(snapshot)}
    dirs = [log_dir for log_dir in snapshot.log_dirs if log_dir.broker == broker.id]
    return _page(visit, broker, "broker.html", snapshot=snapshot, load=loads[broker.id], log_dirs=dirs)


async def settings(visit: Visit, error: str | None = None, edited: str = "", value: str = "", status: int = 200) -> Response:
    _, broker = await _broker(visit)
    known = await _known(visit, ConfigResourceType.BROKER, broker)
    search = visit.argument("q")
    edited = edited or visit.argument("edit")
    listed = settings_of(known.config.entries, search)
    entry = known.config.get(edited)
    return _page(
        visit,
        broker,
        "broker_settings.html",
        status=status,
        settings=listed,
        read_ms=known.read_ms,
        search=search,
        changed=sum(setting.is_changed for setting in listed),
        edited=entry if entry is not None and not entry.is_read_only else None,
        value=value or (entry.value if entry is not None else "") or "",
        error=error,
    )


async def change_setting(visit: Visit) -> Response:
    _, broker = await _broker(visit)
    form = await visit.form()
    name, value = form.get("name", ""), form.get("value", "")
    everywhere = form.get("scope") == "all"
    resource = ConfigResource(ConfigResourceType.BROKER, "" if everywhere else str(broker.id))
    change = AlterConfigOp(name, None, OpType.DELETE) if "reset" in form else AlterConfigOp(name, value)
    if not name or len(value) > _VALUE_MAX:
        return await settings(visit, "Choose a setting, and enter its value.", name, value, 422)
    try:
        (await visit.cluster.admin.incremental_alter_configs({resource: [change]})).all()
    except KafkaError as refusal:
        return await settings(visit, sentence(refusal), name, value, failure_of(refusal).status)
    place = "all brokers" if everywhere else f"broker {broker.id}"
    what = f"{name} of {place} is back to its other value" if "reset" in form else f"{name} of {place} is set"
    return visit.changed(f"{what}.", f"/brokers/{broker.id}/settings")


async def loggers(visit: Visit, error: str | None = None, status: int = 200) -> Response:
    _, broker = await _broker(visit)
    search = visit.argument("q")
    try:
        known = await _known(visit, ConfigResourceType.BROKER_LOGGER, broker)
    except KafkaError as refusal:
        return _page(visit, broker, "broker_loggers.html", loggers=[], search=search, levels=LEVELS, unknown=sentence(refusal))
    listed = [entry for entry in known.config.entries if search.lower() in entry.name.lower()]
    return _page(
        visit,
        broker,
        "broker_loggers.html",
        status=status,
        loggers=sorted(listed, key=lambda entry: (entry.name != "root", entry.name)),
        read_ms=known.read_ms,
        search=search,
        levels=LEVELS,
        unknown=None,
        error=error,
    )


async def change_logger(visit: Visit) -> Response:
    _, broker = await _broker(visit)
    form = await visit.form()
    name, level = form.get("name", ""), form.get("level", "")
    if not name or level not in (*LEVELS, ""):
        return await loggers(visit, "Choose a logger and one of its levels.", 422)
    resource = ConfigResource(ConfigResourceType.BROKER_LOGGER, str(broker.id))
    change = AlterConfigOp(name, level) if level else AlterConfigOp(name, None, OpType.DELETE)
    try:
        (await visit.cluster.admin.incremental_alter_configs({resource: [change]})).all()
    except KafkaError as refusal:
        return await loggers(visit, sentence(refusal), failure_of(refusal).status)
    return visit.changed(
        f"The logger {name} of broker {broker.id} has the level {level or 'of its parent'}.", f"/brokers/{broker.id}/loggers"
    )


async def _broker(visit: Visit) -> tuple[ClusterSnapshot, BrokerSnapshot]:
    snapshot = await visit.cluster.snapshots.current()
    text = visit.path("id")
    broker = snapshot.broker(int(text)) if text.isascii() and text.isdigit() and len(text) < 12 else None
    if broker is None:
        raise NotThere(f"The cluster has no broker {text[:20]}.")
    return snapshot, broker


async def _known(visit: Visit, kind: ConfigResourceType, broker: BrokerSnapshot) -> KnownConfig:
    return await visit.cluster.configs.of(ConfigResource(kind, str(broker.id)))


def _page(visit: Visit, broker: BrokerSnapshot, template: str, *, status: int = 200, **values: object) -> Response:
    base = f"/brokers/{segment(str(broker.id))}"
    tabs = ((base, "Load and disks"), (f"{base}/settings", "Settings"), (f"{base}/loggers", "Log levels"))
    return visit.page(template, status=status, broker=broker, base=base, tabs=tabs, **values)


ROUTES: Final = (
    get("/brokers/{id}", load),
    get("/brokers/{id}/settings", settings),
    post("/brokers/{id}/settings", change_setting),
    get("/brokers/{id}/loggers", loggers),
    post("/brokers/{id}/loggers", change_logger),
)
