"""Znodes of real Kafka clusters, 2.8.2 and 3.9.1 in ZooKeeper mode, against our codecs and our tree."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.metadata.local import LocalSession, LocalTree
from barnabas.metadata.tree import Check, Created, Delete, GetData, Multi, Stat
from barnabas.metadata.znodes import admin, cluster, configs, security, topics
from tests.unit.metadata.dumps import DUMPS, final_state, writes, znodes

Recode = Callable[[str, bytes], bytes]


def topic_of(path: str) -> str:
    return path.split("/")[3]


# By the path of a znode, through our value and back.
RECODE: list[tuple[str, Recode]] = [
    (r"/controller", lambda _, data: cluster.encode_controller(cluster.decode_controller(data))),
    (r"/controller_epoch", lambda _, data: cluster.encode_controller_epoch(cluster.decode_controller_epoch(data))),
    (r"/brokers/ids/\d+", lambda path, data: cluster.encode_broker(cluster.decode_broker(int(path.split("/")[3]), data))),
    (r"/cluster/id", lambda _, data: cluster.encode_cluster_id(cluster.decode_cluster_id(data))),
    (r"/feature", lambda _, data: cluster.encode_features(cluster.decode_features(data))),
    (r"/latest_producer_id_block", lambda _, data: cluster.encode_producer_id_block(cluster.decode_producer_id_block(data))),
    (r"/brokers/topics/[^/]+", lambda path, data: topics.encode_topic(topics.decode_topic(topic_of(path), data))),
    (
        r"/brokers/topics/[^/]+/partitions/\d+/state",
        lambda path, data: topics.encode_partition_state(topics.decode_partition_state(topic_of(path), int(path.split("/")[5]), data)),
    ),
    (r"/config/changes/.+", lambda path, data: configs.encode_config_change(configs.decode_config_change(path, data))),
    (r"/config/.+", lambda path, data: configs.encode_config(configs.decode_config(path.removeprefix("/config/"), data))),
    (r"/admin/reassign_partitions", lambda _, data: admin.encode_reassignment(admin.decode_reassignment(data))),
    (
        r"/admin/preferred_replica_election",
        lambda _, data: admin.encode_preferred_replica_election(admin.decode_preferred_replica_election(data)),
    ),
    (r"/isr_change_notification/.+", lambda path, data: admin.encode_isr_change(admin.decode_isr_change(path, data))),
    (r"/kafka-acl(-extended)?-changes/.+", lambda path, data: security.encode_acl_change(security.decode_acl_change(path, data))),
    (r"/kafka-acl(-extended)?/.+", lambda path, data: security.encode_acls(security.decode_acls(path, data))),
]

# Kafka 2.8 put access lists in another order of keys. We write as 3.9 does, which wrote every other znode of 2.8 as well.
OTHER_ORDER = re.compile(r"/kafka-acl(-extended)?/.+")

ZNODES = [(dump.stem, path, data) for dump in DUMPS for path, data in znodes(dump)]


def test_the_dumps_of_both_versions_are_there() -> None:
    assert [dump.stem for dump in DUMPS] == ["znodes_kafka-2.8.2", "znodes_kafka-3.9.1"]
    assert len(ZNODES) > 150


@pytest.mark.parametrize(("dump", "path", "data"), ZNODES)
def test_a_znode_of_kafka_is_read_and_written_back_to_the_same_bytes(dump: str, path: str, data: bytes) -> None:
    again = recode(path)(path, data)
    if dump.endswith("2.8.2") and OTHER_ORDER.fullmatch(path):
        assert json.loads(again) == json.loads(data)
    else:
        assert again == data


@pytest.mark.parametrize("dump", DUMPS, ids=lambda dump: dump.stem)
def test_every_write_that_kafka_made_leads_to_the_nodes_and_versions_that_zookeeper_had(dump: Path) -> None:
    tree = LocalTree(now_ms=lambda: 0)
    sessions: dict[str, LocalSession] = {}
    reader = tree.open_session_now(lambda event: None)
    for write in writes(dump):
        if write.kind == "createSession":
            sessions[write.session] = tree.open_session_now(lambda event: None)
        elif write.kind == "closeSession":
            sessions[write.session].close_now()
        elif write.kind != "error":
            (response,) = sessions[write.session].handle_now([Multi(write.operations)])
            for operation, result, expected in zip(write.operations, response.value, write.results, strict=True):
                if isinstance(result, Created):
                    assert result.path == expected
                elif isinstance(result, Stat):
                    assert result.version == expected
                else:
                    assert isinstance(operation, (Check, Delete))
    state = final_state(dump)
    for path, node in state.items():
        data, stat = reader.handle_now([GetData(path)])[0].value
        assert (path, data, stat.version, stat.ephemeral_owner != 0) == (path, node.data, node.version, node.is_ephemeral)
    assert tree.node_count == len(state) + 1  # the root


def recode(path: str) -> Recode:
    return next(codec for pattern, codec in RECODE if re.fullmatch(pattern, path))
