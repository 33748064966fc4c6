"""The losses of records of a log that were logged."""

from __future__ import annotations

import logging

from barnabas.topic_partition import TopicPartition

_log = logging.getLogger(__name__)


class NotedLosses:
    def __init__(self, partition: TopicPartition) -> None:
        self._partition = partition
        self._noted: set[int] = set()

    def note(self, up_to: int, what: str, directory: str) -> None:
        """Logs that records are missing below an offset, once for each such offset."""
        if up_to in self._noted:
            return
        self._noted.add(up_to)
        _log.error(
            "%s. Readers of %s get CORRUPT_MESSAGE there and may go on at offset %d. Restore the file from a copy; or, where another "
            "broker has a replica, stop this one and delete %s: it is copied from there; or have the records before deleted (barnabas "
            "delete-records). Where the topic once was compacted and nothing is missing, add compact to its cleanup.policy",
            what,
            self._partition,
            up_to,
            directory,
        )
