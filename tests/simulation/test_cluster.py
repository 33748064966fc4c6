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
    def goes_wrong(seed: int, faults: int, is_secured: bool) -> HistoryOutcome:
        return HistoryOutcome(seed, 1, 1, 1, 1, ["something happened"], ["a record is lost"])

    monkeypatch.setattr(command, "play", goes_wrong)
    monkeypatch.setattr(command, "_set_up_log", lambda _: None)
    assert command.main(["--seeds", "8"]) == 1
    told = capsys.readouterr().out
    assert "a record is lost" in told and "python -m barnabas.simulation --seeds 8 --log" in told
    assert "1 went wrong" in told
