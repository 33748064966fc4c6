"""An archive replayed into a topic: the same records in the same order, whole or in part."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pyspark_barnabas.pipelines import replay
from pyspark_barnabas.pipelines.archive import Archive
from pyspark_barnabas.pipelines.replay import Replay
from pyspark_barnabas.pipelines.topics import ONCE, Source, Target
from tests.broker import TopicMaker
from tests.spark.queries import finish
from tests.spark.topic_contents import Sent, read, send

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENING_MS = 1_763_337_590_000  # ten seconds before midnight
RECORDS = [
    Sent(f"k{number % 5}", None if number == 7 else f"v{number}", EVENING_MS + number * 1000, number % 3, (("n", b"%d" % number),))
    for number in range(30)
]


@pytest.fixture(scope="module")
def archive(spark: SparkSession, bootstrap: str, new_topic: TopicMaker, tmp_path_factory: pytest.TempPathFactory) -> Archive:
    path: Path = tmp_path_factory.mktemp("replay")
    archive = Archive(str(path / "archive"), str(path / "checkpoint"))
    topic = new_topic("original", partitions=3)
    send(bootstrap, topic, RECORDS)
    finish(lambda: archive.start(spark, Source(bootstrap, topic), ONCE))
    return archive


def test_a_replay_is_the_archived_topic_again(spark: SparkSession, bootstrap: str, new_topic: TopicMaker, archive: Archive) -> None:
    again = new_topic("again", partitions=3)
    replay.run(spark, archive, Target(bootstrap, again))
    assert read(bootstrap, again) == sorted(RECORDS, key=lambda record: record.partition)


def test_part_of_an_archive_can_be_replayed_into_fewer_partitions(
    spark: SparkSession, bootstrap: str, new_topic: TopicMaker, archive: Archive
) -> None:
    part = new_topic("part")
    chosen = Replay(first_date="2025-11-17", last_date="2025-11-17", where="key = 'k0'", keep_partitions=False, keep_timestamps=False)
    replay.run(spark, archive, Target(bootstrap, part), chosen)
    replayed = read(bootstrap, part)
    expected = [record.value for record in RECORDS if record.key == "k0" and record.timestamp_ms >= EVENING_MS + 10_000]
    assert sorted(str(record.value) for record in replayed) == sorted(map(str, expected))
    assert all(record.timestamp_ms > EVENING_MS + 100_000 for record in replayed)
