"""The short form of `make soak`: two minutes of the mixed load, with restarts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import zookeeper
from tests.soak.flatness import Bound, verdict
from tests.soak.soak import Soak

SECONDS = 120.0


@pytest.mark.timeout(400)
def test_memory_and_descriptors_stay_flat_under_a_mixed_load_with_restarts(tmp_path: Path) -> None:
    (tmp_path / "zookeeper").mkdir()
    with zookeeper.running(tmp_path / "zookeeper") as ensemble:
        soak = Soak(tmp_path, ensemble.address)
        soak.run(SECONDS, sample_s=1.0, restart_s=25.0)
    assert soak.restarts
    assert [str(judged) for judged in soak.verdicts(with_latencies=False) if not judged.is_flat] == []


def test_a_series_that_grows_is_not_flat() -> None:
    assert not verdict("memory", [100 + 2 * number for number in range(60)], Bound(0.1, 10)).is_flat
    assert verdict("memory", [*range(20), *[50.0] * 40], Bound(0.1, 10)).is_flat
