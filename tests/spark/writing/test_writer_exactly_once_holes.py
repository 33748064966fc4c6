"""The holes of one transaction per task and a decision, and that each is closed: the real writer on real brokers, left at worst moments.

No Spark runs here: tasks and drivers are called as Spark calls them, and stopped where a crash would hurt. Each fact is about what
read_committed readers see.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Generator, Mapping

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka import KafkaError as KafkaErrorCode

from barnabas.client.admin import Admin, AlterConfigOp, ConfigResource, ConfigResourceType, NewTopic
from barnabas.client.admin.topics.transactions import TransactionState
from barnabas.client.errors import KafkaError, UnknownTopicOrPartition
from pyspark_barnabas.errors import OptionError
from pyspark_barnabas.exactly_once.decision_topic import REQUIRED
from pyspark_barnabas.exactly_once.errors import NotDecidedError, ReplayMismatchError, SupersededError
from pyspark_barnabas.exactly_once.records import Slot
from pyspark_barnabas.exactly_once.steps import Begun, Report, Steps, begin, commit
from tests.broker import TopicMaker
from tests.exactly_once_tasks import Driver

TIMEOUT_S = 30
_numbers = itertools.count()

DriverMaker = Callable[..., Driver]


@pytest.fixture
def topic(new_topic: TopicMaker) -> str:
    return new_topic("exactly", partitions=2)


@pytest.fixture
def driver(bootstrap: str, topic: str) -> Generator[DriverMaker, None, None]:
    """Makes drivers of one query with one prefix."""
    prefix = f"prefix-{topic}-{next(_numbers)}"
    made: list[Driver] = []

    def make(query: str = "query", **more: str) -> Driver:
        made.append(Driver(bootstrap, topic, prefix, query, **more))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def visible(bootstrap: str, topic: str) -> Callable[[], list[str]]:
    """All values that a read_committed reader sees, once no open transaction holds it up."""

    def read() -> list[str]:
        partitions = [TopicPartition(topic, number, 0) for number in range(2)]
        _wait_for_the_end(bootstrap, partitions)
        consumer = _consumer(bootstrap, "read_committed")
        values: list[str] = []
        ends = 0
        try:
            consumer.assign(partitions)
            deadline = time.monotonic() + TIMEOUT_S
            while ends < len(partitions):
                assert time.monotonic() < deadline, "the reader does not come to the end"
                message = consumer.poll(0.1)
                if message is None:
                    continue
                error = message.error()
                if error is None:
                    values.append((message.value() or b"").decode())
                else:
                    assert error.code() == KafkaErrorCode._PARTITION_EOF, error
                    ends += 1
        finally:
            consumer.close()
        return sorted(values)

    return read


def _wait_for_the_end(bootstrap: str, partitions: list[TopicPartition]) -> None:
    committed, uncommitted = (_consumer(bootstrap, level) for level in ("read_committed", "read_uncommitted"))
    deadline = time.monotonic() + TIMEOUT_S
    try:
        for partition in partitions:
            end = uncommitted.get_watermark_offsets(partition, timeout=TIMEOUT_S)[1]
            while committed.get_watermark_offsets(partition, timeout=TIMEOUT_S)[1] < end:
                assert time.monotonic() < deadline, f"readers of {partition} are held up"
    finally:
        committed.close()
        uncommitted.close()


def _consumer(bootstrap: str, level: str) -> Consumer:
    settings = {"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": level, "enable.partition.eof": True}
    return Consumer({**settings, "enable.auto.commit": False, "auto.offset.reset": "error"})


def open_ids(bootstrap: str, prefix: str) -> set[str]:
    with Admin({"bootstrap.servers": bootstrap}) as admin:
        listed = admin.list_transactions(states=[TransactionState.ONGOING]).all()
    return {one.transactional_id for some in listed.values() for one in some if one.transactional_id.startswith(prefix)}


def test_batches_become_visible_one_after_the_other(driver: DriverMaker, visible: Callable[[], list[str]]) -> None:
    one = driver()
    one.whole(0, [["a", "b"], ["c"]])
    one.whole(1, [["d"], ["e"]])
    assert visible() == ["a", "b", "c", "d", "e"]


def test_a_task_without_rows_opens_nothing_and_stays_out_of_the_decision(driver: DriverMaker, visible: Callable[[], list[str]]) -> None:
    one = driver()
    run = one.run_of(0)
    reports = one.tasks(run, [[], ["a"], []])
    assert [report.transaction is None for report in reports] == [True, False, True]
    one.commit(run, reports)
    assert visible() == ["a"]


def test_a_batch_without_rows_is_committed_without_a_decision(driver: DriverMaker, visible: Callable[[], list[str]]) -> None:
    one = driver()
    one.whole(0, [[], []])
    one.whole(1, [["a"]])
    assert visible() == ["a"]


def test_a_longer_timeout_than_brokers_allow_is_refused_by_its_name(driver: DriverMaker) -> None:
    one = driver(**{"kafka.transaction.timeout.ms": "900001"})
    with pytest.raises(OptionError, match=r"kafka\.transaction\.timeout\.ms"):
        one.whole(0, [["a"]])


@pytest.mark.parametrize(
    ("settings", "wrong"),
    [
        ({"message.timestamp.type": "LogAppendTime"}, "cleanup.policy=delete:"),
        ({"cleanup.policy": "compact,delete", "message.timestamp.type": "LogAppendTime"}, "cleanup.policy=compact,delete:"),
        ({"cleanup.policy": "compact"}, "message.timestamp.type=CreateTime:"),
    ],
)
def test_a_decision_topic_that_would_lose_decisions_is_refused_until_it_is_altered(
    bootstrap: str, driver: DriverMaker, visible: Callable[[], list[str]], topic: str, settings: dict[str, str], wrong: str
) -> None:
    name = f"{topic}-decisions"
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(name, 1, 1, configs=settings)]).all()
        until_the_broker_has(admin, name, settings)
        writer = driver(decisionTopic=name)
        with pytest.raises(OptionError, match=rf"'decisionTopic': names the topic {name}, which has {wrong}.*--add-config"):
            writer.whole(0, [["a"]])
        required = [AlterConfigOp(setting, value) for setting, value in REQUIRED.items()]
        admin.incremental_alter_configs({ConfigResource(ConfigResourceType.TOPIC, name): required}).all()
        until_the_broker_has(admin, name, REQUIRED)
        writer.whole(0, [["a"]])
    assert visible() == ["a"]


def until_the_broker_has(admin: Admin, topic: str, settings: Mapping[str, str]) -> None:
    """In KRaft the controller answers a change before the brokers have applied it."""
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            config = admin.describe_configs([resource]).all()[resource]
            if all(config[name].value == value for name, value in settings.items()):
                return
        except UnknownTopicOrPartition:
            pass
        assert time.monotonic() < deadline, f"{topic} never got {settings}"


def test_a_batch_that_took_too_long_is_not_decided_and_runs_again(driver: DriverMaker, visible: Callable[[], list[str]]) -> None:
    one = driver(**{"kafka.transaction.timeout.ms": "1000"})
    run = one.run_of(0)
    reports = one.tasks(run, [["a"], ["b"]])
    time.sleep(0.6)  # the time itself is what is tested: half of the timeout is over
    with pytest.raises(NotDecidedError, match="maxOffsetsPerTrigger"):
        one.commit(run, reports)
    one.abort(run, reports)
    driver().whole(0, [["a", "b"]])
    assert visible() == ["a", "b"]


def test_a_decision_whose_driver_died_before_it_ended_anything_is_finished_by_the_next(
    driver: DriverMaker, visible: Callable[[], list[str]]
) -> None:
    first = driver()
    run = first.run_of(0)
    reports = first.tasks(run, [["a", "b"], ["c"]])
    first.take(commit(run, reports, first.runner.names), 3)  # read, DECIDE, read: and gone
    second = driver()
    again = second.run_of(0)
    replayed = second.tasks(again, [["c"], ["b", "a"]])
    assert [report.transaction for report in replayed] == [None, None]
    second.commit(again, replayed)
    second.whole(1, [["d"]])
    assert visible() == ["a", "b", "c", "d"]


def test_a_decision_that_was_ended_but_not_marked_done_is_only_marked(driver: DriverMaker, visible: Callable[[], list[str]]) -> None:
    first = driver()
    run = first.run_of(0)
    reports = first.tasks(run, [["a"], ["b"]])
    first.take(commit(run, reports, first.runner.names), 4)  # and EndTxn of all
    second = driver()
    second.whole(0, [["a", "b"]])
    second.whole(1, [["c"]])
    assert visible() == ["a", "b", "c"]


def test_what_was_decided_is_finished_before_an_id_is_initialized_again(driver: DriverMaker, visible: Callable[[], list[str]]) -> None:
    """A new checkpoint: another query with the same prefix finds the old one's decision."""
    first = driver("old")
    run = first.run_of(7)
    reports = first.tasks(run, [["a"], ["b"]])
    first.take(commit(run, reports, first.runner.names), 3)
    driver("new").whole(0, [["c"]])
    assert visible() == ["a", "b", "c"]


def test_a_retried_end_after_the_id_is_in_use_again_is_taken_for_done(driver: DriverMaker, visible: Callable[[], list[str]]) -> None:
    first = driver()
    run = first.run_of(0)
    reports = first.tasks(run, [["a"], ["b"]])
    steps = commit(run, reports, first.runner.names)
    answer = first.take(steps, 3)
    second = driver()
    second.whole(0, [["a", "b"]])
    second.whole(1, [["c"], ["d"]])
    first.runner.run(_rest(steps, answer))  # its EndTxn is refused: the ids have moved on
    assert visible() == ["a", "b", "c", "d"]


def test_two_attempts_at_one_partition_have_ids_of_their_own(driver: DriverMaker, visible: Callable[[], list[str]], bootstrap: str) -> None:
    one = driver()
    run = one.run_of(0)
    reported = one.task(run, 0, ["a"])
    loser = one.task(run, 0, ["a"])  # a speculative copy, or a retry of one that was thought lost
    assert reported.transaction is not None
    assert loser.transaction is not None
    assert (reported.transaction.slot, loser.transaction.slot) == (Slot(0, 0), Slot(0, 1))
    one.commit(run, [reported])
    assert visible() == ["a"]
    assert open_ids(bootstrap, one.options.prefix) == set()


def test_ids_are_used_again_from_batch_to_batch(driver: DriverMaker, bootstrap: str) -> None:
    one = driver()
    for batch in range(4):
        one.whole(batch, [["a"], ["b"]])
    with Admin({"bootstrap.servers": bootstrap}) as admin:
        listed = admin.list_transactions().all()
    ids = {row.transactional_id for some in listed.values() for row in some if row.transactional_id.startswith(one.options.prefix)}
    assert ids == {f"{one.options.prefix}-0-0", f"{one.options.prefix}-1-0"}


def test_what_a_dead_driver_left_open_is_fenced_when_the_next_one_begins(
    driver: DriverMaker, bootstrap: str, visible: Callable[[], list[str]]
) -> None:
    first = driver()
    first.tasks(first.run_of(0), [["a"], ["b"], ["c"]])
    second = driver()
    run = second.run_of(0)
    reports = second.tasks(run, [["a", "b", "c"]])
    assert open_ids(bootstrap, second.options.prefix) == {f"{second.options.prefix}-0-1"}
    second.commit(run, reports)
    assert visible() == ["a", "b", "c"]


def test_a_zombies_late_rows_are_refused(driver: DriverMaker, visible: Callable[[], list[str]]) -> None:
    """It had begun, was given up, and goes on after the batch was committed without it."""
    one = driver()
    run = one.run_of(0)
    zombie = one.runner.run(begin(run, 0, one.runner.names))
    assert isinstance(zombie, Begun)
    early = _write(one, zombie, ["a"])
    one.commit(run, [one.task(run, 0, ["a"])])
    with pytest.raises(KafkaError):
        early(["a"])
    one.whole(1, [["b"]])
    assert visible() == ["a", "b"]


def test_a_zombie_that_initializes_its_id_late_hits_nobody(driver: DriverMaker, visible: Callable[[], list[str]]) -> None:
    """It was stopped between its claim and its InitProducerId, and wakes up when the next batch is being written."""
    one = driver()
    run = one.run_of(0)
    steps = begin(run, 0, one.runner.names)
    answer = one.take(steps, 3)  # read, CLAIM, read
    one.commit(run, [one.task(run, 0, ["a"])])
    following = one.run_of(1)
    reports = one.tasks(following, [["b"]])
    one.runner.run(_rest(steps, answer))
    one.commit(following, reports)
    assert visible() == ["a", "b"]


def test_of_two_drivers_the_one_that_claimed_last_is_decided(driver: DriverMaker, visible: Callable[[], list[str]]) -> None:
    first, second = driver(), driver()
    run, other = first.run_of(0), second.run_of(0)
    reports = first.tasks(run, [["a"], ["b"]])
    others = second.tasks(other, [["b"], ["a"]])
    with pytest.raises(NotDecidedError, match="another driver has claimed"):
        first.commit(run, reports)
    first.abort(run, reports)
    second.commit(other, others)
    assert visible() == ["a", "b"]


def test_a_driver_that_was_overtaken_cannot_begin_any_more(driver: DriverMaker) -> None:
    first, second = driver(), driver()
    run = first.run_of(0)
    first.task(run, 0, ["a"])
    second.task(second.run_of(0), 0, ["a"])
    with pytest.raises(SupersededError, match="transactionalIdPrefix"):
        first.task(run, 1, ["b"])


def test_an_abort_after_a_decision_aborts_nothing(driver: DriverMaker, visible: Callable[[], list[str]]) -> None:
    """commit() wrote its decision, failed before it ended anything, and Spark calls abort()."""
    one = driver()
    run = one.run_of(0)
    reports = one.tasks(run, [["a"], ["b"]])
    one.take(commit(run, reports, one.runner.names), 2)  # DECIDE was sent; whether it arrived was not heard
    one.abort(run, reports)
    driver().whole(0, [["b", "a"]])
    assert visible() == ["a", "b"]


def test_an_abort_without_a_decision_makes_a_late_one_void(driver: DriverMaker, visible: Callable[[], list[str]]) -> None:
    one = driver()
    run = one.run_of(0)
    reports = one.tasks(run, [["a"], ["b"]])
    late = commit(run, reports, one.runner.names)
    answer = one.take(late, 1)
    one.abort(run, reports)
    with pytest.raises(NotDecidedError):
        one.runner.run(_rest(late, answer))
    driver().whole(0, [["a", "b"]])
    assert visible() == ["a", "b"]


def test_a_batch_that_comes_again_with_other_rows_stops_the_query(driver: DriverMaker, visible: Callable[[], list[str]]) -> None:
    one = driver()
    one.whole(0, [["a", "b"], ["c"]])
    with pytest.raises(ReplayMismatchError, match="is now repeated with 2 rows instead of 3"):
        one.whole(0, [["a"], ["b"]])
    with pytest.raises(ReplayMismatchError, match="3 rows, but not the same"):
        one.whole(0, [["a"], ["b", "x"]])
    driver(verifyReplays="count").whole(0, [["a"], ["b", "x"]])
    driver(verifyReplays="none").whole(0, [["a"]])
    assert visible() == ["a", "b", "c"]


def test_a_new_checkpoint_writes_again(driver: DriverMaker, visible: Callable[[], list[str]]) -> None:
    driver("old").whole(0, [["a"]])
    driver("new").whole(0, [["a"]])
    assert visible() == ["a", "a"]


def _rest(steps: Steps[object], answer: object) -> Steps[object]:
    """Goes on with steps that somebody else has begun."""
    while True:
        try:
            step = steps.send(answer)
        except StopIteration as end:
            return end.value
        answer = yield step


def _write(driver: Driver, begun: Begun, values: list[str]) -> Callable[[list[str]], None]:
    """Writes in a transaction, and can write more in it."""
    from pyspark_barnabas.write.encode import ProducerFields
    from pyspark_barnabas.write.send import TaskSender
    from pyspark_barnabas.write.write_task import RowWriter
    from tests.exactly_once_tasks import batch_of

    transaction = begun.transaction
    sender = TaskSender(driver.client, transactional_id=transaction.slot.transactional_id(driver.options.prefix))
    writer = RowWriter(driver.client, driver.options, ProducerFields(transaction.producer_id, transaction.epoch, True), sender)

    def write(more: list[str]) -> None:
        writer.write(batch_of(more))
        writer.flush()

    write(values)
    return write


def test_a_report_says_nothing_that_a_replay_would_need(driver: DriverMaker) -> None:
    one = driver()
    one.whole(0, [["a", "b"]])
    again = one.run_of(0)
    assert one.task(again, 0, ["b"]).transaction is None
    assert isinstance(one.task(again, 1, ["a"]), Report)
