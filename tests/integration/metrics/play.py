"""Plays the workload on brokers of either kind, and takes the metrics of all brokers down.

A cluster has three brokers: `clients` are the metrics after the requests of clients, `cluster` those after everything. Brokers that were
killed have counted from 0 again, so the second are of broker 1 alone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from tests.cluster import Cluster
from tests.integration.metrics import workload
from tests.integration.metrics.beans import Beans
from tests.integration.metrics.workload import LEADER, Workload

Read = Callable[[int], Beans]  # the metrics of a broker
Played = dict[str, Beans]  # by `clients-1`, `clients-2`, …, `cluster-1`

SETTINGS: Final = {
    "auto.leader.rebalance.enable": "false",
    "auto.create.topics.enable": "false",
    "replica.lag.time.max.ms": "600000",  # only the controller takes brokers out of an ISR
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "min.insync.replicas": "1",
    "log.cleaner.backoff.ms": "1000",
    "num.network.threads": "1",
}
_STILL_S: Final = 1.5
_STILL: Final = "kafka.server:type=BrokerTopicMetrics,name=ReplicationBytesOutPerSec"


def of_cluster(cluster: Cluster, read: Read) -> Played:
    brokers = {number: broker.address for number, broker in cluster.brokers.items()}

    def start(number: int) -> None:
        cluster.brokers[number].start()
        cluster.brokers[number].wait_ready()

    work = workload.Cluster(brokers, lambda number: cluster.brokers[number].kill(), start)
    work.wait_for_brokers()
    workload.of_clients(work)
    workload.of_old_clients(work)
    played = {f"clients-{number}": _settled(lambda number=number: read(number)) for number in brokers}  # type: ignore[misc]
    workload.of_cluster(work)
    played["cluster-1"] = _settled(lambda: read(LEADER))
    return played


def of_one(address: str, read: Callable[[], Beans]) -> Played:
    workload.of_clients(Workload({LEADER: address}))
    return {"clients-1": _settled(read)}


def _settled(read: Callable[[], Beans]) -> Beans:
    """The metrics once replication is still: followers fetch what the last request has written."""
    before, since = read(), time.monotonic()
    while time.monotonic() - since < _STILL_S:
        time.sleep(0.2)
        now = read()
        if now.values.get(_STILL) != before.values.get(_STILL):
            since = time.monotonic()
        before = now
    return before


def as_json(played: Mapping[str, Beans]) -> dict[str, Any]:
    kinds: dict[str, list[Any]] = {}
    for beans in played.values():
        for name, kind in beans.kinds.items():
            labels = max(beans.labels[name], kinds.get(name, [kind, []])[1], key=len)
            kinds[name] = [kind, labels]
    return {"beans": dict(sorted(kinds.items())), "values": {name: dict(sorted(beans.values.items())) for name, beans in played.items()}}


def write(path: Path, record: Mapping[str, Any]) -> None:
    """One line for each bean and each series, so that a change is seen in a diff."""
    path.write_text(json.dumps(record, indent=0, sort_keys=True) + "\n")
