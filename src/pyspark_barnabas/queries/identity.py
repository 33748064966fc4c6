"""Which query a task belongs to: Spark sets it in the local properties of a micro-batch's job.

None of these properties is documented. A Spark that does not set them publishes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

QUERY: Final = "sql.streaming.queryId"
BATCH: Final = "streaming.sql.batchId"
RUN: Final = "spark.jobGroup.id"  # the id of the query's run
DESCRIPTION: Final = "spark.job.description"  # the query's name, then lines "id = ", "runId = " and "batch = "
NAME_SIZE_MAX: Final = 200


class Task(Protocol):
    """The part of Spark's TaskContext that is used."""

    def getLocalProperty(self, key: str) -> str | None: ...


@dataclass(frozen=True, slots=True)
class QueryIdentity:
    """A query, its run and its batch. `name` is None for a query without a name."""

    query_id: str
    run_id: str | None
    name: str | None
    batch: int


def identity_of(task: Task | None) -> QueryIdentity | None:
    """The identity in a task's properties; None outside of a micro-batch."""
    if task is None:
        return None
    query, batch = task.getLocalProperty(QUERY), task.getLocalProperty(BATCH)
    if not query or batch is None or not batch.isdecimal():
        return None
    first, _, rest = (task.getLocalProperty(DESCRIPTION) or "").partition("\n")
    name = first.strip()[:NAME_SIZE_MAX] if rest.startswith("id = ") else ""
    return QueryIdentity(query, task.getLocalProperty(RUN), name or None, int(batch))
