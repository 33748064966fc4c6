"""Every API, sent by clients with and without ACLs, is answered as Apache Kafka answers it: same errors, in the same places.

`make authorization-matrix` records the answers of Apache Kafka anew.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas.broker.handlers import CONTROL, HANDLERS
from barnabas.protocol.registry import APIS
from tests.integration.security.matrix import peers
from tests.integration.security.matrix.case import COLUMNS, KAFKA, ZOOKEEPER_KAFKA
from tests.integration.security.matrix.cases.table import CASES
from tests.integration.security.matrix.play import Matrix, played, users_of
from tests.integration.security.matrix.record import recorded

# Played against a real Apache Kafka in every run: enough to notice that the record is not what the table asks any more.
LIVE = ("Produce", "Metadata", "OffsetCommit", "CreateTopics", "DescribeAcls")

OURS = {KAFKA: peers.own_broker, ZOOKEEPER_KAFKA: peers.own_broker_on_zookeeper}


def test_every_api_has_a_row_for_its_highest_version_and_all_columns() -> None:
    rows = recorded(KAFKA) | recorded(ZOOKEEPER_KAFKA)
    for api in (APIS[key] for key in (*HANDLERS, *CONTROL)):
        names = [f"{case.name} v{api.stable_version}" for case in CASES if case.api is api]
        assert any(set(COLUMNS) <= rows.get(name, {}).keys() for name in names), f"{api} has no row for its highest version"


@pytest.mark.parametrize("kafka", OURS)
def test_every_answer_is_that_of_apache_kafka(kafka: str, tmp_path: Path) -> None:
    with OURS[kafka](tmp_path, users_of(CASES, kafka)) as peer:
        _assert_same(played(peer, CASES, kafka), recorded(kafka))


@pytest.mark.java
def test_the_record_is_what_apache_kafka_answers(tmp_path: Path) -> None:
    cases = [case for case in CASES if case.name in LIVE]
    with peers.kraft_kafka(tmp_path, users_of(cases, KAFKA)) as peer:
        answers = played(peer, cases, KAFKA)
    _assert_same(answers, {row: columns for row, columns in recorded(KAFKA).items() if row in answers})


def _assert_same(answers: Matrix, expected: Matrix) -> None:
    assert answers.keys() == expected.keys()
    different = [
        f"{row}, {column}:\n  is       {json.dumps(answer)}\n  expected {json.dumps(expected[row].get(column))}"
        for row, columns in answers.items()
        for column, answer in columns.items()
        if answer != expected[row].get(column)
    ]
    assert not different, "\n".join([f"{len(different)} answers differ:", *different])
