"""The simulator finds each known mistake that is put into the broker."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from itertools import chain
from typing import Any

import pytest

from barnabas.simulation.histories import play
from tests.simulation import mistakes

SEEDS = 200
# Where the search begins: with a seed that has found it. Every change of the broker makes other histories, so that it goes on from there.
FOUND: dict[Callable[[], Any], int] = {
    mistakes.forget_the_bytes_of_a_member_that_left: 5,
    mistakes.leave_markers_to_the_coordinator_before: 173,
    mistakes.obey_a_deposed_controller: 69,
    mistakes.trust_a_guard_that_a_marker_has_cleared: 17,
    mistakes.shrink_the_isr_without_asking: 56,
    mistakes.write_as_a_deposed_controller: 30,
    mistakes.take_a_replica_into_the_isr_that_is_behind: 28,
    mistakes.trust_brokers_that_came_back: 63,
    mistakes.never_compare_epochs: 8,
    mistakes.give_wall_time_to_housekeeping: 23,
    mistakes.take_a_shortage_for_a_failed_disk: 29,
    mistakes.charge_a_client_that_has_not_authenticated: 2,
    mistakes.measure_a_throttle_only_when_bytes_are_counted: 12,
}


@pytest.fixture(autouse=True)
def quiet() -> Generator[None, None, None]:
    """Brokers with a mistake have much to complain about."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.timeout(3600)  # a search that begins at the wrong place may take long
@pytest.mark.parametrize("mistake", mistakes.MISTAKES)
def test_a_known_mistake_is_found(mistake: Callable[[], Any]) -> None:
    first = FOUND.get(mistake, 0)
    with mistake():
        is_secured, is_throttled = mistake in mistakes.ABOUT_SECURITY, mistake in mistakes.ABOUT_THROTTLES
        histories = (play(seed, is_secured=is_secured, is_throttled=is_throttled) for seed in chain(range(first, SEEDS), range(first)))
        assert any(history.wrong for history in histories)
