"""All reporters of a broker: those of metric.reporters, which can change while it runs, and the push of metrics.otlp.endpoint."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

from barnabas.broker.config import BrokerConfig
from barnabas.broker.reporting.metrics_reporter import Metric, MetricsReporter, read_metrics
from barnabas.broker.reporting.reporter_thread import ReporterThread
from barnabas.broker.scheduling.turns import Turns
from barnabas.broker.security.python_class import instance_of
from barnabas.config_def import InvalidConfig
from barnabas.metrics.registry import Family

SETTING: Final = "metric.reporters"
SERIES_PER_SLICE: Final = 500  # about a millisecond

_JAVA: Final = "org.apache.kafka."

_log = logging.getLogger(__name__)


def reporter_names(config: BrokerConfig) -> list[str]:
    """The Python classes of metric.reporters, each once. Kafka's own reporter is a class of Java, which has no effect here."""
    return [name for name in dict.fromkeys(config.items(SETTING)) if not name.startswith(_JAVA)]


def without_effect(config: BrokerConfig) -> list[str]:
    """One line for each class of Java that the user has set."""
    names = dict.fromkeys(config.items(SETTING)) if config.is_set(SETTING) else ()
    return [
        f"{name} in {SETTING} has no effect here, for there is no JMX: read metrics over HTTP (metrics.listener), or name a Python class"
        for name in names
        if name.startswith(_JAVA)
    ]


def load_reporter(name: str, config: BrokerConfig) -> MetricsReporter:
    """Raises InvalidConfig."""
    reporter = instance_of(name, SETTING, MetricsReporter)
    try:
        reporter.configure(dict(config.properties))
    except Exception as error:
        raise InvalidConfig(f"{SETTING}: {name} refuses the settings of this broker ({type(error).__name__}: {error})") from error
    return reporter


def validate(before: BrokerConfig, after: BrokerConfig) -> None:
    """Raises InvalidConfig, with Kafka's words, if a reporter that is new cannot be made."""
    for name in set(reporter_names(after)) - set(reporter_names(before)):
        try:
            load_reporter(name, after).close()
        except Exception as error:
            _log.warning("%s", error)
            raise InvalidConfig(
                f"Validation of dynamic config update of Set({SETTING}) failed with class class kafka.server.DynamicMetricsReporters"
            ) from error


class Reporters:
    """`families` are read anew for each report, in slices: one in each turn of the loop."""

    def __init__(self, families: Callable[[], Iterable[Family]], turns: Turns) -> None:
        self._families = families
        self._turns = turns
        self._running: dict[str, tuple[ReporterThread, asyncio.Task[None]]] = {}

    @property
    def names(self) -> list[str]:
        return list(self._running)

    def start(self, name: str, reporter: MetricsReporter, interval_s: float) -> None:
        thread = ReporterThread(name, reporter)
        self._running[name] = thread, asyncio.ensure_future(self._report_always(thread, interval_s))

    def reconfigure(self, config: BrokerConfig) -> None:
        """Stops the reporters that metric.reporters no longer names, and starts the new ones. One that cannot be made is an error in the
        log: the setting may be old."""
        names = reporter_names(config)
        for name in [name for name in self._running if "." in name and name not in names]:
            thread, task = self._running.pop(name)
            task.cancel()
            asyncio.get_running_loop().run_in_executor(None, thread.stop)
        for name in names:
            if name not in self._running:
                try:
                    self.start(name, load_reporter(name, config), config.number("kafka.metrics.polling.interval.secs"))
                except InvalidConfig as error:
                    _log.error("%s", error)

    async def stop(self) -> None:
        running, self._running = list(self._running.values()), {}
        for _, task in running:
            task.cancel()
        await asyncio.gather(*(task for _, task in running), return_exceptions=True)
        await asyncio.gather(*(asyncio.to_thread(thread.stop) for thread, _ in running))

    async def _report_always(self, thread: ReporterThread, interval_s: float) -> None:
        while True:
            if thread.is_busy:
                thread.missed_one()
            else:
                thread.offer(await self._read())
            await asyncio.sleep(interval_s)

    async def _read(self) -> list[Metric]:
        metrics: list[Metric] = []
        reading = read_metrics(self._families())
        while slice_read := list(islice(reading, SERIES_PER_SLICE)):
            metrics += slice_read
            await self._turns.next(self)
        return metrics

    def __repr__(self) -> str:
        return "a report of metrics"
