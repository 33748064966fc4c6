"""Three brokers on a real ZooKeeper: what was acknowledged with acks of all outlives any one of them."""

from __future__ import annotations

import signal
import time

from tests.cluster import SESSION_TIMEOUT_MS, Cluster
from tests.integration.cluster import asking
from tests.integration.cluster.describing import Description, until
from tests.integration.cluster.records import Acknowledged, JavaAcknowledged, Written, consumed, in_files, segment_bytes
from tests.zookeeper import ZooKeeper


def check_everything_is_there(three: Cluster, topic: str, written: Written) -> None:
    """Each acknowledged record once and in order, for a consumer and in the files of every broker, which hold the same."""
    assert written.failures == []
    until(lambda: len({segment_bytes(broker.data, topic) for broker in three.brokers.values()}) == 1, "the same in all files")
    expected = sorted(written.values)
    for broker in three.brokers.values():
        assert in_files(broker.data, topic) == expected
    assert consumed(three.bootstrap, topic, len(expected)) == expected
    assert [value for _, value in expected] == [f"value-{number}".encode() for number in range(len(expected))]


def test_a_killed_leader_loses_nothing_and_catches_up_when_it_is_back(three: Cluster) -> None:
    described = Description(three.bootstrap)
    described.create("t", min_insync_replicas="2")
    written = Acknowledged(three.bootstrap, "t")
    written.start()
    written.wait_for_more(200)
    first = described.leader("t")
    three.brokers[first].kill()
    until(lambda: described.leader("t") not in (first, -1), "another leader")
    written.wait_for_more(200)
    three.brokers[first].start()
    three.brokers[first].wait_ready()
    until(lambda: described.isr("t") == {1, 2, 3}, "all in sync")
    written.wait_for_more(200)
    written.stop()
    check_everything_is_there(three, "t", written)
    assert three.tracebacks() == []


def test_a_rolling_restart_is_not_noticed(three: Cluster) -> None:
    """By no client: neither sees an error, and nothing is lost."""
    described = Description(three.bootstrap)
    for topic in ("t", "java"):
        described.create(topic, min_insync_replicas="2")
    java = JavaAcknowledged(three.bootstrap, "java")
    written = Acknowledged(three.bootstrap, "t")
    written.start()
    java.start()
    for broker in three.brokers.values():
        wait_for_more(written, *java.written)
        assert broker.stop() == 0
        assert "Controlled shutdown request returned successfully" in broker.said()
        wait_for_more(written, *java.written)
        broker.start()
        broker.wait_ready()
        until(lambda: asking.all_in_sync(three.brokers.values()), "all in sync")
    wait_for_more(written, *java.written)
    written.stop()
    java.stop()
    for each in (written, *java.written):
        check_everything_is_there(three, each.topic, each)
    assert three.tracebacks() == []


def wait_for_more(*written: Written) -> None:
    for each in written:
        each.wait_for_more(50)


def test_a_broker_that_slept_through_its_session_comes_back_by_itself(three: Cluster) -> None:
    """And has not acknowledged anything as the leader that it was not any more."""
    described = Description(three.bootstrap)
    described.create("t", min_insync_replicas="2")
    written = Acknowledged(three.bootstrap, "t")
    written.start()
    written.wait_for_more(100)
    first = described.leader("t")
    three.brokers[first].signal(signal.SIGSTOP)
    awake = Description(",".join(broker.address for broker in three.brokers.values() if broker.id != first))
    until(lambda: awake.leader("t") not in (first, -1), "another leader")
    written.wait_for_more(100)
    three.brokers[first].signal(signal.SIGCONT)
    until(lambda: awake.isr("t") == {1, 2, 3}, "all in sync")
    written.wait_for_more(100)
    written.stop()
    check_everything_is_there(three, "t", written)
    assert three.tracebacks() == []


def test_the_controller_is_killed_and_another_one_takes_over(three: Cluster) -> None:
    described = Description(three.bootstrap)
    described.create("t", min_insync_replicas="2")
    written = Acknowledged(three.bootstrap, "t")
    written.start()
    written.wait_for_more(100)
    first = described.controller()
    three.brokers[first].kill()
    until(lambda: described.controller() not in (first, -1), "another controller")
    described.create("made-by-the-next", partitions=2, replicas=2)
    three.brokers[first].start()
    three.brokers[first].wait_ready()
    until(lambda: described.isr("t") == {1, 2, 3}, "all in sync")
    written.stop()
    check_everything_is_there(three, "t", written)
    assert three.tracebacks() == []


def test_without_zookeeper_the_brokers_go_on_and_find_it_again(three: Cluster, ensemble: ZooKeeper) -> None:
    described = Description(three.bootstrap)
    described.create("t", min_insync_replicas="2")
    written = Acknowledged(three.bootstrap, "t")
    written.start()
    written.wait_for_more(100)
    ensemble.kill()
    written.wait_for_more(100)
    time.sleep(1.5 * SESSION_TIMEOUT_MS / 1000)
    ensemble.start()
    written.wait_for_more(100)
    until(lambda: len(described.isr("t")) == 3, "all in sync")
    until(lambda: described.is_created("made-afterwards"), "a new topic")
    written.stop()
    check_everything_is_there(three, "t", written)
    assert three.tracebacks() == []
