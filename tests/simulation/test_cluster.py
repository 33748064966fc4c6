"""Three brokers in a simulated world: what they acknowledged is kept through kills, power losses, cut links and restarts, seed by seed."""

from __future__ import annotations

import pytest

from barnabas.simulation.histories import History, play

SEEDS = range(6)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_acknowledged_is_kept_through_whatever_happens(seed: int) -> None:
    outcome = play(seed)
    assert outcome.wrong == [], str(outcome)
    assert outcome.acknowledged == 300


def test_one_seed_is_one_history_of_a_cluster() -> None:
    one, again, other = play(3, faults=3, records=30), play(3, faults=3, records=30), play(4, faults=3, records=30)
    assert (one.trace, one.steps, one.events) == (again.trace, again.steps, again.events)
    assert one.trace != other.trace


def test_without_faults_every_replica_has_the_same_in_no_time() -> None:
    history = History(1)
    history.begin(50, 0.01)
    outcome = history.end()
    assert (outcome.wrong, outcome.acknowledged) == ([], 100)
