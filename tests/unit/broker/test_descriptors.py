"""How the file descriptors of a process are divided."""

from __future__ import annotations

import pytest

from barnabas.broker.descriptors import budget_of, guard_of, real_files
from barnabas.simulation.disk import SimulatedFiles


@pytest.mark.parametrize("limit", [64, 128, 256, 1024, 4096, 65_536, 1_048_576, 2**31 - 1])
def test_files_connections_and_all_else_have_their_share(limit: int) -> None:
    budget = budget_of(limit)
    connections = budget.limit - budget.files - budget.unheld_reserve - budget.spares
    assert 0 < budget.spares < budget.reserve
    assert connections >= limit // 2
    assert budget.files >= min(limit // 4, 16_384)


def test_a_simulated_disk_takes_no_descriptors() -> None:
    assert guard_of(SimulatedFiles()).is_unlimited
    assert not guard_of(real_files()).is_unlimited
