"""The simulator finds what it is there to find: each known mistake, put into the broker, makes one of a few histories go wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from typing import Any

import pytest

from barnabas.simulation.histories import play
from tests.simulation import mistakes

SEEDS = range(40)


@pytest.fixture(autouse=True)
def quiet() -> Generator[None, None, None]:
    """Brokers with a mistake have much to complain about."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize(
    "mistake",
    [
        mistakes.acknowledge_before_the_isr_has_it,
        mistakes.let_the_high_watermark_run_ahead,
        mistakes.truncate_to_the_high_watermark,
    ],
)
def test_a_known_mistake_is_found(mistake: Callable[[], Any]) -> None:
    with mistake():
        assert any(play(seed).wrong for seed in SEEDS)
