"""What is told of a stream: commits to a group, lag, arrivals, and losses."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future

import pytest

from barnabas.topic_partition import TopicPartition
from pyspark_barnabas.errors import CheckpointError, DataLossError, OptionError
from pyspark_barnabas.offsets import StreamOffset
from pyspark_barnabas.read import progress as progress_module
from pyspark_barnabas.read import stream_changes
from pyspark_barnabas.read.filters import RowFilter
from pyspark_barnabas.read.progress import ArrivalRate, GroupProgress, lag, lag_metrics, with_metrics
from pyspark_barnabas.read.progress_listener import GroupProgressListener, finished_offsets
from pyspark_barnabas.read.read_options import ReadOptions
from pyspark_barnabas.read.stream_changes import Losses, gone, receded
from pyspark_barnabas.subscription import Subscription
from tests.logged import lines_of

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


class Coordinator:
    """Takes commits and answers them, all in the same way."""

    def __init__(self) -> None:
        self.commits: list[dict[TopicPartition, int]] = []
        self.error: Exception | None = None

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> Future[None]:
        assert group_id == "g"
        self.commits.append(dict(offsets))
        answer: Future[None] = Future()
        if self.error is None:
            answer.set_result(None)
        else:
            answer.set_exception(self.error)
        return answer


def test_each_finished_batch_is_committed_once_and_only_what_changed() -> None:
    coordinator = Coordinator()
    progress = GroupProgress("g", coordinator.commit)
    progress.finished(StreamOffset({A0: 5, A1: 0}))
    progress.finished(StreamOffset({A0: 5, A1: 0}))
    progress.finished(StreamOffset({A0: 5, A1: 7}))
    assert coordinator.commits == [{A0: 5, A1: 0}, {A1: 7}]


def test_a_group_is_never_set_back_but_begins_again_with_a_new_topic() -> None:
    coordinator = Coordinator()
    progress = GroupProgress("g", coordinator.commit)
    progress.finished(StreamOffset({A0: 5}, {"a": "old"}))
    progress.finished(StreamOffset({A0: 4}, {"a": "old"}))
    progress.finished(StreamOffset({A0: 1}, {"a": "new"}))
    assert coordinator.commits == [{A0: 5}, {A0: 1}]


def test_a_failed_commit_is_told_once_and_made_good_by_the_next(caplog: pytest.LogCaptureFixture) -> None:
    coordinator = Coordinator()
    coordinator.error = RuntimeError("members")
    progress = GroupProgress("g", coordinator.commit)
    with caplog.at_level(logging.WARNING):
        progress.finished(StreamOffset({A0: 5, A1: 1}))
        progress.finished(StreamOffset({A0: 6, A1: 1}))
        coordinator.error = None
        progress.finished(StreamOffset({A0: 7, A1: 1}))
        progress.close()
    assert coordinator.commits[-1] == {A0: 7, A1: 1}
    assert len([line for line in lines_of(caplog, progress_module) if "kafka.group.id" in line]) == 1


def test_of_commits_that_wait_for_a_slow_one_only_the_last_is_sent() -> None:
    commits: list[dict[TopicPartition, int]] = []
    answers: list[Future[None]] = []

    def commit(_: str, offsets: Mapping[TopicPartition, int]) -> Future[None]:
        commits.append(dict(offsets))
        answers.append(Future())
        return answers[-1]

    progress = GroupProgress("g", commit)
    for offset in (1, 2, 3):
        progress.finished(StreamOffset({A0: offset}))
    assert commits == [{A0: 1}]
    answers[0].set_result(None)
    progress.finished(StreamOffset({A0: 4}))
    assert commits == [{A0: 1}, {A0: 4}]
    progress.finished(StreamOffset({A0: 5}))
    answers[1].set_result(None)
    threading.Thread(target=answer_the_third, args=(answers,)).start()
    progress.close()
    assert commits[2:] == [{A0: 5}]


def answer_the_third(answers: list[Future[None]]) -> None:
    deadline = time.monotonic() + 10
    while len(answers) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    answers[2].set_result(None)


def test_lag_is_what_comes_after_the_batch() -> None:
    assert lag({A0: 5, A1: 9}, {A0: 8, A1: 9}) == {A0: 3, A1: 0}
    assert lag_metrics({A0: 5, A1: 9}, {A0: 8, A1: 9}) == {
        "minOffsetsBehindLatest": 0,
        "maxOffsetsBehindLatest": 3,
        "avgOffsetsBehindLatest": 1.5,
        "offsetsBehindLatest": 3,
    }
    assert lag_metrics({}, {}) == {}


def test_arrivals_are_counted_from_one_look_to_the_next() -> None:
    rate = ArrivalRate()
    assert rate.update({A0: 5}, 1000) is None
    assert rate.update({A0: 25, A1: 100}, 3000) == 10.0  # a new partition's records may be old
    assert rate.update({A0: 25, A1: 100}, 3000) is None


def test_metrics_stand_beside_the_topics() -> None:
    assert with_metrics({"a": {"0": 1}}, "a at b:1", {"x": 1}) == {"a": {"0": 1}, "#source": "a at b:1", "#metrics": {"x": 1}}
    assert with_metrics({"a": {"0": 1}}, "a at b:1", {}) == {"a": {"0": 1}, "#source": "a at b:1"}


def test_a_loss_ends_the_query_or_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    loss = receded(A0, 9, 5)
    with pytest.raises(DataLossError, match="The end of a-0 went back from offset 9 to 5"):
        Losses(fails=True).report([loss])
    lenient = Losses(fails=False)
    lenient.report([loss])
    lenient.report([receded(A0, 9, 5)])
    assert len(lines_of(caplog, stream_changes)) == 1


def test_partitions_that_the_query_does_not_read_are_of_another_checkpoint() -> None:
    subscription = Subscription(topics=frozenset({"a"}))
    deleted, foreign = gone([A0], subscription, RowFilter()), gone([TopicPartition("z", 0)], subscription, RowFilter())
    assert [type(one) for one in deleted] == [DataLossError]
    assert [type(one) for one in foreign] == [CheckpointError]
    assert "checkpointLocation" in str(foreign[0])


def test_a_listener_commits_only_what_its_options_read() -> None:
    options = ReadOptions.of({"kafka.bootstrap.servers": "localhost:9092", "subscribe": "a", "kafka.group.id": "g"}, streaming=True)
    shown = json.dumps(StreamOffset({A0: 5}, {"a": "id"}).to_json())
    assert finished_offsets(shown, options) == StreamOffset({A0: 5}, {"a": "id"})
    of_another_topic = json.dumps(StreamOffset({TopicPartition("b", 0): 5}, {"b": "id"}).to_json())
    of_another_source = json.dumps({"a": {"0": 5}})
    for other in (of_another_topic, of_another_source, "null", "7", "not JSON"):
        assert finished_offsets(other, options) is None


def test_a_listener_wants_a_group() -> None:
    with pytest.raises(OptionError, match=r"Option 'kafka\.group\.id': must be set"):
        GroupProgressListener({"kafka.bootstrap.servers": "localhost:9092", "subscribe": "a"})
