"""Commits a stream's progress from the program that started it, at the very end of each batch.

The source itself commits a batch when Spark requests the next one. With long pauses between triggers, or if a query is stopped in a pause,
that is late. Spark notifies its listeners at the end of each batch; this listener commits then:

    options = {"kafka.bootstrap.servers": "…", "subscribe": "orders", "kafka.group.id": "billing"}
    spark.streams.addListener(GroupProgressListener(options))
    spark.readStream.format("barnabas").options(**options)…
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql.streaming.listener import StreamingQueryListener

from pyspark_barnabas.cluster import ClusterClient
from pyspark_barnabas.errors import OptionError
from pyspark_barnabas.offsets import TOPIC_IDS, StreamOffset
from pyspark_barnabas.read.progress import GroupProgress
from pyspark_barnabas.read.read_options import GROUP_ID, ReadOptions

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )


class GroupProgressListener(StreamingQueryListener):
    """Commits for the streams with these options; other streams are ignored. Must be closed after it is removed."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = ReadOptions.of(options, streaming=True)
        if self._options.group_id is None:
            raise OptionError(GROUP_ID, "must be set: it is the group that progress is committed to.")
        self._cluster = ClusterClient(self._options.settings)
        self._progress = GroupProgress(self._options.group_id, self._cluster.commit)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        for source in event.progress.sources:
            if finished := finished_offsets(source.endOffset, self._options):
                self._progress.finished(finished)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        self._progress.close()

    def close(self) -> None:
        self._progress.close()
        self._cluster.close()


def finished_offsets(shown: str, options: ReadOptions) -> StreamOffset | None:
    """The offsets in a query's progress for a source of ours with these options; None for other sources."""
    try:
        document = json.loads(shown)
    except (TypeError, ValueError):
        return None
    if not isinstance(document, dict) or TOPIC_IDS not in document:
        return None
    offset = StreamOffset.of(document)
    return offset if offset.offsets and all(options.subscription.includes(partition) for partition in offset.offsets) else None
