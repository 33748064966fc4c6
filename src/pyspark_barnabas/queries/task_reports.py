"""The side of the tasks: they publish what they know about their micro-batch, when they begin to read and when they have read or written.

Every function returns at once and raises nothing: a query must not notice that it is published.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from pyspark_barnabas.queries.identity import QueryIdentity, identity_of
from pyspark_barnabas.queries.query_record import part_key, read_record, sink_record, source_record

if TYPE_CHECKING:
    from pyspark_barnabas.connections import Role
    from pyspark_barnabas.queries.query_record import Record
    from pyspark_barnabas.read.ranges import RangePartition
    from pyspark_barnabas.write.write_options import WriteOptions

_log: Final = logging.getLogger(__name__)


@contextmanager
def reading(partition: RangePartition, settings: Mapping[str, str]) -> Generator[None, None, None]:
    """Around the reading of a range. The first range of a batch has the note of the batch. A range that fails is not reported as read."""
    note, key = partition.note, partition.source_key
    if note is not None:
        _publish(settings, "consumer", lambda query: source_record(query, note))
    yield
    if key is not None:
        _publish(settings, "consumer", lambda query: read_record(query, key, _now_ms()))


def wrote(options: WriteOptions, topics: Sequence[str], began_ms: int) -> None:
    """A task has written its rows to these topics."""
    if options.publish:
        part, names = part_key(options.topic or ""), sorted(topics) or ([options.topic] if options.topic else [])
        _publish(
            options.settings,
            "producer",
            lambda query: sink_record(query, part, names, options.exactly_once, began_ms, _now_ms()),
        )


def _now_ms() -> int:
    return int(time.time() * 1000)


def _publish(settings: Mapping[str, str], role: Role, record: Callable[[QueryIdentity], Record]) -> None:
    try:
        from pyspark import TaskContext

        from pyspark_barnabas.connections import shared_client
        from pyspark_barnabas.queries.publisher import publisher

        query = identity_of(TaskContext.get())
        if query is not None:
            with shared_client(settings, role) as client:
                publisher(client).publish(record(query))
    except Exception as error:  # whatever happens here is no reason to end a query
        _log.debug("The progress of the query could not be published: %r", error)
