"""How the descriptors that a process may open are shared between the files of the logs, connections, and all else.

Files come first: what cannot be written or read fails everybody, a connection that has to wait only its client. A quarter of the limit is
the files' own; up to half they use while connections leave it to them. An eighth is left for all that is neither: checkpoints, the metadata
store, links to other brokers, the libraries.
"""

from __future__ import annotations

import resource
from typing import Final, NamedTuple

from barnabas.network.config import INT_MAX
from barnabas.network.descriptors import DescriptorGuard
from barnabas.storage.disk.file_pool import MAX_OPEN, FilePool
from barnabas.storage.disk.files import AnyFiles, Files

RESERVE_MIN: Final = 16
RESERVE_MAX: Final = 512
SPARES_MAX: Final = 16
FREED_AT_ONCE: Final = 32  # files that are closed for connections: each accept would otherwise close one


class DescriptorBudget(NamedTuple):
    limit: int
    files: int  # that connections leave to the pool, whether or not they are open
    reserve: int  # for all that is neither a file of the pool nor a client's connection
    spares: int  # of the reserve, held open by the pool

    @property
    def unheld_reserve(self) -> int:
        return self.reserve - self.spares


def budget_of(limit: int) -> DescriptorBudget:
    reserve = min(max(limit // 8, RESERVE_MIN), RESERVE_MAX)
    return DescriptorBudget(limit, min(limit // 4, MAX_OPEN), reserve, min(reserve // 2, SPARES_MAX))


def process_budget() -> DescriptorBudget:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return budget_of(INT_MAX if soft == resource.RLIM_INFINITY else soft)


def real_files() -> AnyFiles:
    """The disk, with descriptors in reserve."""
    budget = process_budget()
    return Files(FilePool(spares=budget.spares, share=budget.files, ceiling=budget.limit - budget.unheld_reserve))


def guard_of(files: AnyFiles) -> DescriptorGuard:
    """For the listeners of a broker with these files; simulated ones take no descriptors."""
    if not isinstance(files, Files):
        return DescriptorGuard()
    budget, pool = process_budget(), files.pool
    return DescriptorGuard(
        budget.limit,
        budget.unheld_reserve,
        held_back=lambda: max(0, budget.files - pool.open_count),
        make_room=lambda: pool.give_back(FREED_AT_ONCE),
    )
