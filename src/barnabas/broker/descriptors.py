"""How the file descriptors of the process are divided between log files, connections, and everything else.

Log files come first: a file that cannot be opened fails every client of its partition, while a connection that waits delays one client. A
quarter of the limit is reserved for log files; they may use up to half of it while connections do not need the rest. An eighth is reserved
for everything else: checkpoints, the metadata store, links to other brokers, libraries.
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
FREED_AT_ONCE: Final = 32  # files that are closed at once to make room for connections; otherwise every accept would close one


class DescriptorBudget(NamedTuple):
    limit: int
    files: int  # reserved for the file pool, whether or not its files are open
    reserve: int  # for descriptors that are neither files of the pool nor client connections
    spares: int  # part of the reserve, held open by the pool

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
    """The files of the machine, with spare descriptors as the budget says."""
    budget = process_budget()
    return Files(FilePool(spares=budget.spares, share=budget.files, ceiling=budget.limit - budget.unheld_reserve))


def guard_of(files: AnyFiles) -> DescriptorGuard:
    """The descriptor guard for the listeners of a broker with these files. Simulated files use no descriptors."""
    if not isinstance(files, Files):
        return DescriptorGuard()
    budget, pool = process_budget(), files.pool
    return DescriptorGuard(
        budget.limit,
        budget.unheld_reserve,
        held_back=lambda: max(0, budget.files - pool.open_count),
        make_room=lambda: pool.give_back(FREED_AT_ONCE),
    )
