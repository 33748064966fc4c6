"""Three simulated brokers: acknowledged results survive kills, pauses, power losses, bad disks and cut links."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from barnabas.simulation import __main__ as command
from barnabas.simulation.histories import History, HistoryOutcome, play
from tests.simulation.conftest import IS_COMPILED

SEEDS_TOGETHER = 2
SEEDS = 50 if IS_COMPILED else 4  # each takes several times as long where the broker is not compiled
SECURED_SEEDS = 10 if IS_COMPILED else 2
TWO_DISK_SEEDS = 10 if IS_COMPILED else 2
DRAIN_SEEDS = 6
THROTTLED_SEEDS = 10 if IS_COMPILED else 2
RECORDS, TRANSACTIONS = 100, 20
TELL = "from barnabas.simulation.histories import play; outcome = play(7, 2, 15, 0.4, 6); print(outcome.steps, outcome.trace)"


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_TOGETHER))
def test_what_was_promised_is_kept_through_whatever_happens(first: int) -> None:
    for seed in range(first, first + SEEDS_TOGETHER):
        outcome = play(seed)
        assert outcome.wrong == [], str(outcome)
        assert outcome.acknowledged == RECORDS
        assert outcome.committed <= TRANSACTIONS


@pytest.mark.parametrize("first", range(0, SECURED_SEEDS, SEEDS_TOGETHER))
def test_secured_brokers_keep_it_and_obey_the_acls(first: int) -> None:
    for seed in range(first, first + SEEDS_TOGETHER):
        outcome = play(seed, is_secured=True)
        assert outcome.wrong == [], str(outcome)
        assert outcome.acknowledged == RECORDS


@pytest.mark.parametrize("first", range(0, TWO_DISK_SEEDS, SEEDS_TOGETHER))
def test_brokers_with_two_disks_keep_it_though_disks_fail(first: int) -> None:
    for seed in range(first, first + SEEDS_TOGETHER):
        outcome = play(seed, has_two_disks=True)
        assert outcome.wrong == [], str(outcome)
        assert outcome.acknowledged == RECORDS


@pytest.mark.parametrize("first", range(0, THROTTLED_SEEDS, SEEDS_TOGETHER))
def test_brokers_keep_it_though_replication_is_throttled_and_clients_are_limited(first: int) -> None:
    for seed in range(first, first + SEEDS_TOGETHER):
        outcome = play(seed, is_throttled=True)
        assert outcome.wrong == [], str(outcome)
        assert outcome.acknowledged == RECORDS


def test_brokers_that_are_drained_while_faults_happen_become_empty_and_nothing_is_lost() -> None:
    assert sum(is_empty_when_drained(seed) for seed in range(DRAIN_SEEDS)) >= DRAIN_SEEDS // 2  # a fault may hold a reassignment up


def is_empty_when_drained(seed: int) -> bool:
    """Whether all partitions have left the broker before it was stopped. It gets them back afterwards."""
    history = History(seed)
    history.begin(30, 0.2, transactions=8)
    history.world.run_for(2.0)
    partitions, became_empty = [*history.partitions, *history.transactions], False
    for wait_s in history.faults.broker_is_drained():
        drained = next(int(event.split()[-1]) for event in history.faults.events if " drain " in event)
        history.world.run_for(wait_s)
        states = [history.cluster.state_of(partition) for partition in partitions]
        became_empty |= all(state is not None and drained not in state.isr for state in states)
    outcome = history.end()
    assert outcome.wrong == [], str(outcome)
    return became_empty


def test_a_broker_that_loses_one_of_two_disks_serves_the_other_and_has_both_after_a_restart() -> None:
    history = History(1, has_two_disks=True)
    history.begin(40, 0.1, transactions=8)
    broker = next(iter(history.cluster.brokers.values()))
    lost = broker.log_dirs[1]
    broker.files.fail_when(lambda event: event.kind in ("write", "sync", "create") and event.path.startswith(f"{lost}/"))
    history.world.run_for(8.0)
    assert broker.broker is not None and broker.is_serving
    log_manager = broker.broker.replica_manager.log_manager
    assert (list(log_manager.dirs), list(log_manager.offline_dirs)) == ([broker.log_dirs[0]], [lost])
    led = [partition for partition in history.cluster.partitions() if history.cluster.leader_of(partition) is broker]
    assert all(log_manager.get(partition) is not None for partition in led)
    outcome = history.end()
    assert outcome.wrong == [], str(outcome)
    assert not broker.has_offline_dir and any(f"kill {broker.id}" in event for event in outcome.events)


def test_one_seed_is_one_secured_history() -> None:
    one, again = play(3, 2, 15, 0.4, 6, is_secured=True), play(3, 2, 15, 0.4, 6, is_secured=True)
    assert (one.trace, one.steps, one.wrong) == (again.trace, again.steps, [])


def test_one_seed_is_one_history_of_a_cluster() -> None:
    one, again, other = play(3, 2, 15, 0.4, 6), play(3, 2, 15, 0.4, 6), play(4, 2, 15, 0.4, 6)
    assert (one.trace, one.steps, one.events) == (again.trace, again.steps, again.events)
    assert one.trace != other.trace


def test_it_is_the_same_history_where_hashes_are_others() -> None:
    def told(hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.run([sys.executable, "-c", TELL], env=environment, capture_output=True, text=True, check=True, timeout=300).stdout

    assert told("1") == told("2") != ""


def test_without_faults_every_replica_has_the_same_in_no_time() -> None:
    history = History(1)
    history.begin(50, 0.01, transactions=8)
    outcome = history.end()
    assert (outcome.wrong, outcome.acknowledged, outcome.committed) == ([], 100, 6)


def test_a_history_that_went_wrong_says_how_to_see_it_again(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def goes_wrong(seed: int, faults: int, **_: bool) -> HistoryOutcome:
        return HistoryOutcome(seed, 1, 1, 1, 1, ["something happened"], ["a record is lost"])

    monkeypatch.setattr(command, "play", goes_wrong)
    monkeypatch.setattr(command, "_set_up_log", lambda _: None)
    assert command.main(["--seeds", "8"]) == 1
    output = capsys.readouterr().out
    assert "a record is lost" in output and "python -m barnabas.simulation --seeds 8 --log" in output
    assert "1 went wrong" in output
