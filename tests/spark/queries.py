"""Queries that end, on machines that are busy.

Spark gives each of its Python processes ten seconds to come up, and fails the query where that is not enough. Nothing is wrong with the
query then: started again, it goes on where it was, and so that is what is done here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

STARTS_MAX = 20
TOO_SLOW = "failed to connect back"


def finish(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """Starts a query that ends by itself, and waits for its end."""
    for _ in range(STARTS_MAX - 1):
        query = start()
        try:
            query.awaitTermination()
            return query
        except Exception as error:
            if TOO_SLOW not in str(error):
                raise
    query = start()
    query.awaitTermination()
    return query
