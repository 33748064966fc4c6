"""What Apache Kafka's own DumpLogSegments prints of the files that a broker has left, without what the clock decides."""

from __future__ import annotations

import re
from pathlib import Path

from tests import golden, kafka
from tests.integration.transactions.stage import HISTORY

TRANSACTION_LOG = "the transaction log"
FILES = "the files of the history"
TIMES = [
    (re.compile(r"(CreateTime|LastTimestamp|lastTimestamp|[lL]argestTime|timestamp|Timestamp): \d{13}"), r"\1: TIME"),
    (re.compile(r'(TimestampMs|Timestamp)":\d+'), r'\1":TIME'),
    (re.compile(r"\bcrc: \d+"), "crc: CRC"),
    # Of the time index: which batch has the greatest time follows from whether two were written in one millisecond.
    (re.compile(r"^timestamp: TIME offset: \d+$", re.MULTILINE), "timestamp: TIME offset: OF THE GREATEST"),
]


def dump_of_states(logs: Path) -> str:
    """`__transaction_state`, decoded."""
    files = sorted(file for file in logs.glob("__transaction_state-*/*.log") if file.stat().st_size)
    return _dump(logs, ["--transaction-log-decoder", "--files", ",".join(map(str, files))])


def dump_of_history(logs: Path) -> str:
    """Log, indexes and snapshots of the history, segment by segment, the transaction indexes as bytes too."""
    files = golden.files(logs / f"{HISTORY}-0")
    indexes = [f"{file.name} {file.read_bytes().hex()}" for file in files if file.suffix == ".txnindex"]
    return _dump(logs, ["--print-data-log", "--files", ",".join(map(str, files))]) + "\n".join(indexes)


def _dump(logs: Path, arguments: list[str]) -> str:
    done = kafka.dump_log(arguments)
    assert done.code == 0, done.err
    text = done.out.replace(str(logs), "LOGS")
    for pattern, word in TIMES:
        text = pattern.sub(word, text)
    return text
