"""Exactly once, whoever crashes when: the real steps on a model of the broker, in any order."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pyspark_barnabas.exactly_once.decision_log import DecisionLog
from tests.exactly_once_model import World

EVENTS_MAX = 1500


def run(seed: int, batches: int = 4) -> World:
    world = World(Random(seed), batches)
    for _ in range(EVENTS_MAX):
        world.chaos()
        if world.finished:
            break
    world.peace()
    return world


def wanted(world: World) -> Counter[int]:
    return Counter(row for rows in world.batches for row in rows)


@given(st.integers(0, 2**32))
@settings(max_examples=60, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])  # a smaller seed is no simpler history
def test_every_row_is_visible_once_whatever_is_killed_delayed_or_runs_twice(seed: int) -> None:
    world = run(seed)
    assert world.broker.visible == wanted(world)


@pytest.mark.parametrize("seed", range(20))
def test_these_histories_have_been_seen_to_end_well(seed: int) -> None:
    world = run(seed, batches=6)
    assert world.broker.visible == wanted(world)


def test_the_model_finds_it_if_slots_that_somebody_may_still_use_are_given_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """An InitProducerId that comes late then aborts what another has reported, and a batch that was decided cannot be ended."""
    monkeypatch.setattr(DecisionLog, "_is_busy", lambda self, slot: False)
    with pytest.raises(AssertionError, match="did not come through"):
        for seed in range(30, 60):
            run(seed, batches=6)
