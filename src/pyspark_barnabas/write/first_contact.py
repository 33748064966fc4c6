"""Checks at the first write of a driver that the cluster answers: a wrong address is reported before any task runs.

Without this check every task would retry for minutes and fail with a page of Spark's text around the reason. A cluster that has answered
once is not checked again: a running stream waits for its brokers. Spark creates a writer for every micro-batch in a new process; the
answer is recorded in the driver's directory of files, which is deleted with the driver.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark import SparkFiles

from pyspark_barnabas.error_first import is_spark_worker
from pyspark_barnabas.options import FIRST_ANSWER_MS

if TYPE_CHECKING:
    from pyspark_barnabas.write.write_options import WriteOptions

_MAX_BLOCK: Final = "max.block.ms"  # the producer's timeout for metadata
_PLACE: Final = ("bootstrap.servers", "security.protocol")


def require_answer(options: WriteOptions) -> None:
    """Raises ClusterError, or OptionError for an unknown host, unless the cluster has answered or answers in time."""
    if not is_spark_worker():
        return
    note = _note(options.settings)
    if note.exists():
        return
    from pyspark_barnabas.cluster import ClusterClient  # imported here because it takes half a second

    limit_ms = int(options.settings.get(_MAX_BLOCK, FIRST_ANSWER_MS))
    with ClusterClient(options.settings, first_answer_ms=limit_ms, patience_option=f"kafka.{_MAX_BLOCK}") as cluster:
        cluster.reach()
    note.touch()


def _note(settings: Mapping[str, str]) -> Path:
    digest = hashlib.sha256(repr([settings.get(name) for name in _PLACE]).encode()).hexdigest()[:16]
    return Path(SparkFiles.getRootDirectory(), f".barnabas-answered-{digest}")
