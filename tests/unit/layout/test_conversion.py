"""Data directories converted from one number of brokers to another, and the conversion killed at every step of it."""

from __future__ import annotations

import random

import pytest

from barnabas.layout.errors import DirectoryInUse, NotConvertible, WrongLayout
from barnabas.layout.journal import ConversionJournal
from barnabas.layout.layout import Layout
from barnabas.layout.layout_file import find_layout
from barnabas.layout.plan import ConversionPlan
from barnabas.metadata import paths
from barnabas.metadata.znodes.configs import encode_config
from barnabas.simulation.disk import SimulatedCrash, SimulatedFiles
from barnabas.storage.directory.checkpoints import OffsetCheckpoint
from barnabas.storage.directory.log_dir import LogDir
from barnabas.storage.directory.meta_properties import MetaPropertiesFile
from barnabas.topic_partition import TopicPartition
from tests.unit.layout.directories import CONTROLLER_EPOCH, DATA, EPOCH, FileStore, Partition, convert, make, records, tree_of
from tests.unit.storage.logs import write_file

ONE = {"orders": [Partition({1: 5}), Partition({1: 3})], "broker": [Partition({1: 2}), Partition({1: 4})]}
THREE = {
    "orders": [Partition({1: 5, 2: 5, 3: 5}), Partition({2: 6, 3: 7, 1: 3}, isr=(2, 3), leader=-1)],
    "broker": [Partition({3: 2}), Partition({3: 1, 2: 4}, isr=(2,), leader=2)],
}
TWO = {"orders": [Partition({1: 5, 2: 5})], "broker": [Partition({2: 2, 1: 2}, isr=(2,))]}


def most(files: SimulatedFiles) -> dict[str, int]:
    """Of each partition the records of the replica that leads."""
    store = FileStore(files)
    held = records(files)
    return {name: held[name][store.state(*_parts(name)).leader] for name in held}


def _parts(name: str) -> tuple[str, int]:
    topic, _, partition = name.rpartition("-")
    return topic, int(partition)


# -- what it makes of a directory


def test_one_broker_becomes_three_which_replicate_everything() -> None:
    files = make(1, ONE)
    convert(files, 3)
    assert find_layout(files, DATA) == Layout(3)
    assert records(files) == {"orders-0": {1: 5}, "orders-1": {1: 3}, "broker-0": {1: 2}, "broker-1": {1: 4}}
    store = FileStore(files)
    assert store.assignment("orders") == {0: (2, 3, 1), 1: (3, 1, 2)}
    state = store.state("orders", 0)
    assert (state.leader, state.isr, state.leader_epoch, state.controller_epoch) == (1, (1,), EPOCH + 1, CONTROLLER_EPOCH)


def test_one_broker_becomes_five_and_the_logs_are_spread() -> None:
    files = make(1, {"orders": [Partition({1: partition_id}) for partition_id in range(1, 6)]})
    convert(files, 5)
    assert records(files) == {"orders-0": {1: 1}, "orders-1": {2: 2}, "orders-2": {3: 3}, "orders-3": {1: 4}, "orders-4": {1: 5}}


def test_three_brokers_become_one_which_has_what_the_leaders_had_or_the_longest_log_in_sync() -> None:
    files = make(3, THREE)
    convert(files, 1)
    assert find_layout(files, DATA) == Layout(1)
    assert records(files) == {"orders-0": {1: 5}, "orders-1": {1: 7}, "broker-0": {1: 2}, "broker-1": {1: 4}}
    assert not [path for path in tree_of(files) if "conversion" in path or "layout" in path]
    assert FileStore(files).assignment("broker") == {0: (1,), 1: (1,)}


def test_three_brokers_become_two_and_what_was_in_sync_stays_in_sync() -> None:
    files = make(3, THREE)
    convert(files, 2)
    assert records(files) == {"orders-0": {1: 5, 2: 5}, "orders-1": {1: 7, 2: 6}, "broker-0": {1: 2}, "broker-1": {1: 1, 2: 4}}
    store = FileStore(files)
    assert [set(store.state("orders", number).isr) for number in (0, 1)] == [{1, 2}, {1, 2}]
    assert (store.state("broker", 1).leader, store.state("broker", 1).isr) == (2, (2,))


def test_two_brokers_become_four_and_nothing_moves() -> None:
    files = make(2, TWO)
    report = convert(files, 4)
    assert isinstance(report[0], ConversionPlan) and report[0].moved.logs == 0
    assert records(files) == {"orders-0": {1: 5, 2: 5}, "broker-0": {1: 2, 2: 2}}
    assert FileStore(files).assignment("orders")[0][:2] == (1, 2)
    assert len(FileStore(files).assignment("orders")[0]) == 3


def test_there_and_back_is_what_it_was() -> None:
    files = make(1, ONE)
    before = records(files)
    for brokers in (3, 2, 4, 1):
        convert(files, brokers)
    assert records(files) == before
    assert FileStore(files).znodes()[paths.CONTROLLER_EPOCH] == str(CONTROLLER_EPOCH)


def test_the_checkpoints_go_with_the_logs() -> None:
    files = make(1, ONE)
    convert(files, 3)
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        assert OffsetCheckpoint(files, f"{DATA}/broker-1/{name}").read()[TopicPartition("orders", 0)] == 5
    assert OffsetCheckpoint(files, f"{DATA}/broker-1/cleaner-offset-checkpoint").read()[TopicPartition("orders", 0)] == 1
    assert files.exists(f"{DATA}/broker-3/.kafka_cleanshutdown")


def test_brokers_that_stay_keep_the_ids_of_their_directories() -> None:
    files = make(3, THREE)
    before = [MetaPropertiesFile(files, f"{DATA}/broker-{number}").read() for number in (1, 2)]
    convert(files, 2)
    assert [MetaPropertiesFile(files, f"{DATA}/broker-{number}").read() for number in (1, 2)] == before


def test_an_adopted_directory_has_a_broker_with_another_id() -> None:
    files = make(1, {"orders": [Partition({0: 5})]}, node=0)
    FileStore(files).write([(paths.config_entity("brokers/0"), encode_config({"log.retention.ms": "7"}))])
    convert(files, 2)
    assert records(files) == {"orders-0": {1: 5}}
    assert FileStore(files).znodes()[paths.config_entity("brokers/2")] == encode_config({"log.retention.ms": "7"}).decode()


@pytest.mark.parametrize(("source", "target", "before", "after"), [(1, 3, "1", "2"), (3, 1, "2", "1"), (3, 1, "3", "3"), (2, 4, "1", "2")])
def test_the_topic_of_transactions_asks_for_as_many_in_sync_as_there_can_be(source: int, target: int, before: str, after: str) -> None:
    counts = dict.fromkeys(range(1, min(3, source) + 1), 2)
    settings = {"__transaction_state": {"min.insync.replicas": before, "cleanup.policy": "compact"}}
    files = make(source, {"__transaction_state": [Partition(counts)]}, settings=settings)
    convert(files, target)
    assert FileStore(files).topic_config("__transaction_state") == {"min.insync.replicas": after, "cleanup.policy": "compact"}


def test_a_topic_with_fewer_replicas_than_usual_keeps_their_number() -> None:
    files = make(3, {"orders": [Partition({3: 5})]})
    convert(files, 2)
    assert FileStore(files).assignment("orders") == {0: (1,)} and records(files) == {"orders-0": {1: 5}}


def test_stray_logs_go_along_and_logs_that_no_topic_claims_become_stray() -> None:
    files = make(3, THREE)
    for directory in ("old-0.abc-stray", "gone-1.def-delete", "unknown-0"):
        files.make_dirs(f"{DATA}/broker-3/{directory}")
    convert(files, 1)
    directories = [path.removeprefix(f"{DATA}/") for path in tree_of(files) if path.count("/") == 2]
    assert {"old-0.abc-stray", "gone-1.def-delete"} <= set(directories)
    assert [name for name in directories if name.startswith("unknown-0.") and name.endswith("-stray")]


def test_what_a_failed_start_left_is_not_in_the_way() -> None:
    files = make(1, {"orders": [Partition({1: 5})]})
    files.make_dirs(f"{DATA}/broker-2")
    write_file(files, f"{DATA}/broker-2/.lock", b"")
    convert(files, 3)
    assert records(files) == {"orders-0": {1: 5}}


def test_a_log_in_a_directory_that_a_failed_start_left_is_a_log() -> None:
    files = make(1, {"broker": [Partition({1: 5}), Partition({1: 3})]})
    write_file(files, f"{DATA}/broker-1/.lock", b"")
    convert(files, 3)
    assert records(files) == {"broker-0": {1: 5}, "broker-1": {1: 3}}


def test_it_says_how_much_it_moves_and_with_a_dry_run_does_nothing() -> None:
    files = make(3, THREE)
    before = tree_of(files)
    (plan,) = convert(files, 1, dry_run=True)
    assert isinstance(plan, ConversionPlan)
    assert (plan.moved.logs, plan.dropped.logs, plan.fetched.logs) == (4, 5, 0)
    assert plan.moved.size > 0 and tree_of(files) == before
    (plan,) = convert(make(1, ONE), 3, dry_run=True)
    assert isinstance(plan, ConversionPlan) and (plan.moved.logs, plan.fetched.logs) == (4, 8)


def test_the_same_number_is_nothing_to_do() -> None:
    assert convert(make(3, THREE), 3) == []


# -- what it refuses


def refused(files: SimulatedFiles, brokers: int, text: str) -> None:
    before = tree_of(files)
    with pytest.raises(NotConvertible, match=text):
        convert(files, brokers)
    assert tree_of(files) == before


def test_a_broker_that_was_not_stopped_cleanly_is_refused() -> None:
    files = make(3, THREE)
    files.remove(f"{DATA}/broker-2/.kafka_cleanshutdown")
    refused(files, 1, "broker 2 was not stopped cleanly: start 3 brokers once")


def test_a_partition_whose_only_replica_in_sync_is_gone_is_refused() -> None:
    files = make(3, {"orders": [Partition({1: 5, 2: 5, 3: 9}, isr=(3,), leader=3)]})
    files.remove_tree(f"{DATA}/broker-3/orders-0")
    refused(files, 1, "no replica of orders-0 is clean")


def test_a_leader_that_lacks_what_another_has_as_committed_is_refused() -> None:
    files = make(3, {"orders": [Partition({1: 5, 2: 9, 3: 9}, isr=(1,), leader=1)]})
    refused(files, 1, "that of broker 1 ends at 5, but records up to 9 were acknowledged")


def test_a_file_that_is_not_of_a_broker_is_refused() -> None:
    files = make(3, THREE)
    write_file(files, f"{DATA}/broker-2/notes.txt", b"by hand")
    refused(files, 1, r"broker-2/notes\.txt was not made by a broker")


def test_what_is_in_the_way_is_refused() -> None:
    files = make(3, THREE)
    files.make_dirs(f"{DATA}/orders-0")
    refused(files, 1, "/data/orders-0 is not of these brokers")


def test_a_store_of_another_cluster_is_refused() -> None:
    files = make(3, THREE)
    FileStore(files).write([(paths.CLUSTER_ID, b'{"version":"1","id":"another"}')])
    refused(files, 1, "are not of the cluster of the metadata store")


def test_a_reassignment_under_way_is_refused() -> None:
    files = make(3, THREE)
    FileStore(files).write([(paths.REASSIGN_PARTITIONS, b"{}")])
    refused(files, 1, "a reassignment of some partitions is under way")


def test_an_empty_directory_is_refused() -> None:
    files = SimulatedFiles()
    files.make_dirs(DATA)
    with pytest.raises(NotConvertible, match="has no data of `barnabas up`"):
        convert(files, 3)


@pytest.mark.parametrize("directory", ["", "/broker-2"])
def test_a_broker_that_runs_is_refused(directory: str) -> None:
    files = make(3, THREE)
    running = LogDir(files, DATA + directory)
    with pytest.raises(DirectoryInUse, match="is in use by a broker"):
        convert(files, 1)
    running.release()


# -- killed at any step


@pytest.mark.parametrize(("source", "target"), [(1, 3), (3, 1), (3, 2), (2, 3)])
def test_a_conversion_that_is_killed_at_any_step_was_not_begun_or_is_finished_by_the_next(source: int, target: int) -> None:
    """Also where the power goes with the process, and what was not synced is lost. Topics named `broker` have logs named as brokers are."""
    first = make(source, {"broker": {1: ONE, 2: TWO, 3: THREE}[source]["broker"]})
    unharmed = first.process_crash()
    convert(unharmed, target)
    expected, expected_tree = records(unharmed), tree_of(unharmed)
    before, step, outcomes = records(first), 0, set()
    while True:
        files = first.process_crash()
        files.halt_at(files.events + step)
        try:
            convert(files, target)
            break
        except SimulatedCrash:
            pass
        for survivor in (files.process_crash(), files.crash(random.Random(step))):
            outcomes.add(_outcome(survivor, source, target, before, expected))
            _finish(survivor, target)
            assert records(survivor) == expected and tree_of(survivor) == expected_tree, f"killed at step {step}"
        step += 1
    assert outcomes == {"not begun", "interrupted", "done"}
    assert step > 20


def _outcome(files: SimulatedFiles, source: int, target: int, before: object, after: object) -> str:
    """What a start finds: the old layout as it was, the new one complete, or a conversion that it refuses to serve."""
    try:
        layout = find_layout(files, DATA)
    except WrongLayout:
        return "interrupted"
    assert layout in (Layout(source), Layout(target))
    assert records(files) == (before if layout == Layout(source) else after)
    return "not begun" if layout == Layout(source) else "done"


def _finish(files: SimulatedFiles, target: int) -> None:
    """What a finished conversion had no time to remove goes with the next, though there is nothing else to do."""
    convert(files, target)
    assert not files.exists(f"{DATA}/barnabas-conversion")


def test_another_number_can_be_asked_for_after_an_interruption() -> None:
    first = make(1, ONE)
    files = first.process_crash()
    files.fail_when(lambda event: event.kind == "rename" and event.path == f"{DATA}/orders-1")
    with pytest.raises(OSError, match="Input/output error"):
        convert(files, 3)
    with pytest.raises(NotConvertible, match="without --dry-run"):
        convert(files, 2, dry_run=True)
    files.heal()
    finished, plan = convert(files, 2)
    assert isinstance(finished, ConversionJournal) and finished.target == Layout(3)
    assert isinstance(plan, ConversionPlan) and most(files) == {"orders-0": 5, "orders-1": 3, "broker-0": 2, "broker-1": 4}


def test_a_journal_that_is_damaged_is_not_taken_for_none() -> None:
    files = make(1, ONE)
    files.make_dirs(f"{DATA}/barnabas-conversion")
    write_file(files, f"{DATA}/barnabas-conversion/journal.json", b'{"version": 1')
    with pytest.raises(WrongLayout, match=r"journal\.json cannot be read"):
        convert(files, 3)
