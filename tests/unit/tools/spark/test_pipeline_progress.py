"""What `barnabas pipeline run` shows: rows and times out of Spark's event log, windows that are open, and failures in one line."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from barnabas.tools.spark.pipeline_progress import Flow, FlowFailure, Flows, failure_in, progress_line, terminal_line
from barnabas.tools.spark.pipeline_run import Output
from barnabas.tools.spark.spark_event_log import PROGRESS, STARTED, TERMINATED, SparkEventLog, log_settings

LISTENER = "org.apache.spark.sql.streaming.StreamingQueryListener$"
MISSING = "Option 'subscribe': there is no topic orders on the cluster at h:1. Create it."
MISSING_TOPIC = (
    "org.apache.spark.SparkException: [PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed when Python streaming data source perform "
    f"initialOffset: pyspark_barnabas.errors.UnknownTopicError: {MISSING}\n\nTraceback (most recent call last):\n  File …"
)


def progress(rows: int, ms: int, *, groups: int | None = None, run: str = "r1", **times: str) -> dict[str, Any]:
    operators = [] if groups is None else [{"operatorName": "stateStoreSave", "numRowsTotal": groups}]
    event_time = {name: f"2025-11-16T{time}.000Z" if len(time) == 8 else time for name, time in times.items()}
    return {
        "runId": run,
        "name": "sales",
        "durationMs": {"triggerExecution": ms, "addBatch": ms - 1},
        "eventTime": event_time,
        "stateOperators": operators,
        "sources": [{"numInputRows": rows}],
    }


def started(name: str = "sales", run: str = "r1") -> dict[str, Any]:
    return {"name": name, "runId": run}


def flow_of(*batches: dict[str, Any]) -> Flow:
    flow = Flow("sales")
    for batch in batches:
        flow.take(batch)
    return flow


def test_rows_and_times_are_those_of_batches_that_had_rows() -> None:
    flow = flow_of(progress(3000, 1500), progress(0, 200))
    assert flow.text() == "sales: 2,000 rows/s, batch 1.5 s"
    assert list(flow.summary()) == ["sales: 3,000 rows in 2 batches, 1,765 rows/s, the slowest batch took 1.5 s"]


def test_a_slow_flow_is_not_shown_as_one_that_stands_still() -> None:
    assert flow_of(progress(5, 16_000)).text() == "sales: 0.3 rows/s, batch 16.0 s"
    assert Flow("sales").text() == "sales: the first batch is running"


def test_progress_is_one_line() -> None:
    assert progress_line([flow_of(progress(10, 1000)), Flow("b")], 70_000) == (
        "sales: 10 rows/s, batch 1.0 s; b: the first batch is running; lag 70,000"
    )


def test_on_a_terminal_the_line_has_a_bar_once_the_lag_is_known() -> None:
    flow = flow_of(progress(10, 1000))
    assert terminal_line([flow], None) == "sales: 10 rows/s, batch 1.0 s"
    assert terminal_line([flow], 30) == (
        "read ████████······················  25%  10 of 40 rows, 10/s, 3 s left; sales: 10 rows/s, batch 1.0 s"
    )


def test_an_open_window_says_what_has_to_arrive() -> None:
    flow = flow_of(
        progress(5, 1000, groups=3, watermark="1970-01-01T00:00:00.000Z", max="12:02:00"),
        progress(0, 500, groups=2, watermark="12:01:50"),
    )
    assert list(flow.summary())[1] == (
        "sales: 2 groups are in windows that are still open, which end after the watermark, 2025-11-16 12:01:50 UTC (10 s before the "
        "newest record). A window closes when a record arrives whose time is 10 s or more after its end"
    )


def test_a_watermark_that_this_run_has_not_moved_says_nothing_of_the_lateness() -> None:
    flow = flow_of(
        progress(5, 1000, groups=1, watermark="12:01:50", max="11:00:00"),
        progress(0, 500, groups=1, watermark="12:01:50"),
    )
    assert list(flow.summary())[1].endswith("the watermark follows the newest record by the lateness")


def test_windows_that_are_all_out_are_not_mentioned() -> None:
    flow = flow_of(progress(5, 1000, groups=3, max="12:02:00"), progress(0, 500, groups=0, watermark="12:01:50"))
    assert len(list(flow.summary())) == 1


def test_our_error_is_found_in_what_spark_says() -> None:
    assert failure_in(MISSING_TOPIC) == FlowFailure("UnknownTopicError", MISSING)
    assert failure_in("java.lang.OutOfMemoryError: heap") is None
    assert failure_in("WARNING barnabas.client.network.connections: the client tries again") is None
    assert failure_in("barnabas.client.errors.Timeout: no answer\nTraceback") == FlowFailure("Timeout", "no answer")


@pytest.mark.parametrize(
    ("exception", "unfinished", "hopeless"),
    [
        (MISSING_TOPIC, set(), True),
        (MISSING_TOPIC, {"sales"}, True),  # Spark will start it again
        (MISSING_TOPIC, {"archive"}, False),  # another flow has work to do
        ("pyspark_barnabas.exactly_once.errors.NotDecidedError: late", set(), False),  # running it again helps
        ("java.lang.OutOfMemoryError: heap", set(), False),
    ],
)
def test_a_run_ends_early_when_nothing_could_still_succeed(exception: str, unfinished: set[str], hopeless: bool) -> None:
    flows = Flows()
    flows.take(STARTED, started("spark_catalog.default.sales"))
    assert not flows.are_hopeless(unfinished)
    flows.take(TERMINATED, {"runId": "r1", "exception": exception})
    assert flows.are_hopeless(unfinished) == hopeless


def test_a_flow_that_spark_has_started_again_is_no_failure() -> None:
    flows = Flows()
    flows.take(STARTED, started())
    flows.take(TERMINATED, {"runId": "r1", "exception": MISSING_TOPIC})
    assert flows.failures() == [f"flow sales: {MISSING}"]
    flows.take(STARTED, started(run="r2"))
    flows.take(PROGRESS, {"progress": progress(7, 1000, run="r2")})
    flows.take(TERMINATED, {"runId": "r2", "exception": None})
    assert flows.failures() == []
    assert flows.all[0].rows == 7


def test_the_event_log_is_read_as_it_grows_and_old_files_go(tmp_path: Path) -> None:
    application = tmp_path / "eventlog_v2_local-1"
    application.mkdir()
    first, second = application / "events_1_local-1", application / "events_2_local-1"
    line = json.dumps({"Event": f"{LISTENER}QueryStartedEvent", "runId": "r1", "name": "sales"}, separators=(",", ":"))
    log = SparkEventLog(tmp_path)
    assert list(log.events()) == []
    first.write_text(f'{{"Event":"SparkListenerJobStart"}}\n{line}\n{line[:40]}')
    assert [kind for kind, _ in log.events()] == ["QueryStartedEvent"]
    assert list(log.events()) == []
    first.write_text(f'{{"Event":"SparkListenerJobStart"}}\n{line}\n{line}\n')
    second.write_text(f"{line}\n")
    assert [event["name"] for _, event in log.events()] == ["sales", "sales"]
    assert list(application.iterdir()) == [second]
    assert log_settings(tmp_path)["spark.eventLog.dir"] == tmp_path.as_uri()


def test_a_flow_that_failed_is_not_shown_as_completed(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        "2026-11-17 22:06:34: Flow default.sales is QUEUED.",
        "26/11/17 22:06:37 ERROR MicroBatchExecution: Query default.sales [id = 1, runId = 2] terminated with error",
        "2026-11-17 22:06:37: Flow default.sales has COMPLETED.",
        "2026-11-17 22:06:38: Flow 'default.sales' has FAILED.",
    ]
    output = Output(io.StringIO("".join(f"{line}\n" for line in lines)), verbose=False)
    output.finish()
    assert capsys.readouterr().out == "22:06:34  Flow default.sales is QUEUED.\n22:06:38  Flow 'default.sales' has FAILED.\n"
