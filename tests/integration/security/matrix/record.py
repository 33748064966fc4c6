"""Plays the matrix against Apache Kafka 4.2.0 and 3.9.1 and writes down what they answered: `make authorization-matrix`."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tests.integration.security.matrix import peers
from tests.integration.security.matrix.answer import CLOSED
from tests.integration.security.matrix.case import KAFKA, ZOOKEEPER_KAFKA
from tests.integration.security.matrix.cases.table import CASES
from tests.integration.security.matrix.play import Matrix, grouped, played, ungrouped, users_of

PEERS = {KAFKA: peers.kraft_kafka, ZOOKEEPER_KAFKA: peers.zookeeper_kafka}
_DATA = Path(__file__).parents[3] / "data"


def record_of(kafka: str) -> Path:
    return _DATA / f"authorization-{kafka}.json"


def recorded(kafka: str) -> Matrix:
    return ungrouped(json.loads(record_of(kafka).read_text()))


def _record(kafka: str) -> None:
    with tempfile.TemporaryDirectory() as directory, PEERS[kafka](Path(directory), users_of(CASES, kafka)) as peer:
        matrix = grouped(played(peer, CASES, kafka))
    without_response = {f"{case.name} v{version}" for case in CASES for version in case.versions if not case.is_answered}
    unanswered = [row for row in matrix.keys() - without_response if any(group["answer"] == CLOSED for group in matrix[row])]
    assert not unanswered, f"Apache Kafka {kafka} does not serve {unanswered}"
    rows = (
        f"{json.dumps(row)}: [\n  " + ",\n  ".join(json.dumps(group, ensure_ascii=False) for group in matrix[row]) + "\n ]"
        for row in sorted(matrix)
    )
    record_of(kafka).write_text("{\n " + ",\n ".join(rows) + "\n}\n")


if __name__ == "__main__":
    for version in sys.argv[1:] or PEERS:
        _record(version)
        print(f"{record_of(version).name}: {len(recorded(version))} rows")
