"""The thread of one reporter. The broker hands over the values of metrics and never waits for it."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Sequence
from typing import Final

from barnabas.broker.reporting.metrics_reporter import Metric, MetricsReporter, SeriesKey

CLOSE_SECONDS: Final = 5.0  # how long a stopping broker waits for a reporter

_log = logging.getLogger(__name__)


class ReporterThread:
    """At most one report waits. `offer` drops it while the one before is being reported. Errors and missed reports are logged when they
    begin, and not again until a report has succeeded."""

    def __init__(self, name: str, reporter: MetricsReporter) -> None:
        self.name = name
        self.missed = 0
        self._reporter = reporter
        self._reports: queue.SimpleQueue[Sequence[Metric] | None] = queue.SimpleQueue()
        self._is_busy = threading.Event()
        self._known: dict[SeriesKey, Metric] | None = None  # None before the first report
        self._has_failed = False
        self._is_late = False
        # A daemon: a reporter that blocks for ever must not keep the process alive.
        self._thread = threading.Thread(target=self._run, name=f"reporter {name}", daemon=True)
        self._thread.start()

    @property
    def is_busy(self) -> bool:
        return self._is_busy.is_set()

    def offer(self, metrics: Sequence[Metric]) -> None:
        """Called on the event loop, if the reporter is not busy."""
        self._is_busy.set()
        self._reports.put(metrics)

    def missed_one(self) -> None:
        self.missed += 1
        if not self._is_late:
            self._is_late = True
            _log.warning("The reporter %s misses reports, because it has not returned from the last one", self.name)

    def stop(self) -> None:
        """Waits for CLOSE_SECONDS at most; to be called on a thread."""
        self._reports.put(None)
        self._thread.join(CLOSE_SECONDS)
        if self._thread.is_alive():
            _log.warning("The reporter %s did not return within %d seconds, and is left behind", self.name, CLOSE_SECONDS)

    def _run(self) -> None:
        while (metrics := self._reports.get()) is not None:
            try:
                self._report(metrics)
                if self._has_failed or self._is_late:
                    _log.info("The reporter %s works again", self.name)
                self._has_failed = self._is_late = False
            except BaseException as error:  # SystemExit too: it would end this thread without a line
                if not self._has_failed:
                    self._has_failed = True
                    is_expected = isinstance(error, OSError)  # a receiver that is away: the text says enough
                    text = "The reporter %s failed and is called again after its interval: %s"
                    _log.warning(text, self.name, error, exc_info=None if is_expected else error)
            finally:
                self._is_busy.clear()
        try:
            self._reporter.close()
        except BaseException:
            _log.exception("The reporter %s failed to close", self.name)

    def _report(self, metrics: Sequence[Metric]) -> None:
        known, self._known = self._known, {metric.key: metric for metric in metrics}
        if known is None:
            self._reporter.init(metrics)
        else:
            for key, metric in self._known.items():
                if key not in known:
                    self._reporter.metric_change(metric)
            for key, metric in known.items():
                if key not in self._known:
                    self._reporter.metric_removal(metric)
        self._reporter.report(metrics)
