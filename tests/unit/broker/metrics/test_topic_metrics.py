from __future__ import annotations

from inspect import isdatadescriptor

from barnabas.broker.metrics.topic_metrics import OF_ALL, OF_TOPICS, BrokerTopicMetrics, TopicMetrics, value_of


def test_a_topic_is_forgotten_with_its_last_replica_and_all_topics_remember_it() -> None:
    metrics = BrokerTopicMetrics()
    first, second = metrics.replica_added("orders"), metrics.replica_added("orders")
    assert first is second
    first.bytes_in += 10
    metrics.elsewhere.total_produces += 1
    metrics.replica_removed("orders")
    assert [topic for topic, _ in metrics.topics()] == ["orders"]
    metrics.replica_removed("orders")
    metrics.replica_removed("orders")  # one that was not there
    assert (metrics.topics(), metrics.all_topics().bytes_in, metrics.all_topics().total_produces) == ([], 10, 1)
    metrics.replica_added("orders").bytes_in += 1
    assert (metrics.topics()[0][1].bytes_in, metrics.all_topics().bytes_in) == (1, 11)


def test_the_sum_has_every_counter() -> None:
    one, total = TopicMetrics(), TopicMetrics()
    for count, name in enumerate(OF_ALL, 1):
        setattr(one, name, count)
    total.add(one)
    total.add(one)
    assert [value_of(name)(total) for name in OF_ALL] == [2 * count for count in range(1, len(OF_ALL) + 1)]
    counters = {name for name, member in vars(TopicMetrics).items() if isdatadescriptor(member)}  # compiled classes have no __slots__
    assert set(OF_TOPICS) < set(OF_ALL) == counters - {"replicas"}
