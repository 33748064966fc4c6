"""Reads topics as a stream: the methods that Spark calls, on the planner and in the tasks.

One instance plans as long as the query runs, in a Python process beside the driver; pickled copies of it read in the tasks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader

from pyspark_barnabas.error_first import error_first
from pyspark_barnabas.errors import OptionError
from pyspark_barnabas.offsets import StreamOffset
from pyspark_barnabas.read.ranges import RangePartition
from pyspark_barnabas.read.read_options import MAX_OFFSETS, MIN_OFFSETS
from pyspark_barnabas.read.record_reader import RecordReader
from pyspark_barnabas.spark_versions import ReadAllAvailable, ReadMaxRows, ReadMinRows, SupportsTriggerAvailableNow

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

    from pyspark_barnabas.read.read_options import ReadOptions
    from pyspark_barnabas.read.stream_planner import StreamPlanner


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader that Spark calls. `StreamPlanner` has the state and the connections and is not pickled."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._records = RecordReader(options, schema)
        self._planner: StreamPlanner | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_planner": None}

    @error_first()
    def initialOffset(self) -> dict[str, Any]:
        return self._planning().initial().to_json()

    @error_first()
    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        return self._planning().latest(StreamOffset.of(start), limit).to_json()

    def getDefaultReadLimit(self) -> Any:
        """Spark takes only one of the two limits; the other is applied here."""
        options = self._options
        if options.max_offsets_per_trigger is not None:
            return ReadMaxRows(options.max_offsets_per_trigger)
        if options.min_offsets_per_trigger is not None:
            return ReadMinRows(options.min_offsets_per_trigger)
        return ReadAllAvailable()

    @error_first()
    def prepareForTriggerAvailableNow(self) -> None:
        self._planning().fix_target()

    @error_first()
    def reportLatestOffset(self) -> dict[str, Any] | None:
        return self._planning().report()

    @error_first()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        planner = self._planning()
        pieces = planner.ranges(StreamOffset.of(start), StreamOffset.of(end))
        key, note = planner.source_key, planner.note
        return [RangePartition(piece, key, None if number else note) for number, piece in enumerate(pieces)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with error_first():  # a generator: errors are raised while it runs
            if not isinstance(partition, RangePartition) or partition.source_key is None:
                yield from self._records.read(partition)
                return
            from pyspark_barnabas.queries.task_reports import reading

            with reading(partition, self._options.settings):
                yield from self._records.read(partition)

    @error_first()
    def commit(self, end: dict[str, Any]) -> None:
        self._planning().finished(StreamOffset.of(end))

    def stop(self) -> None:
        if self._planner is not None:
            self._planner.close()
            self._planner = None

    def _planning(self) -> StreamPlanner:
        if self._planner is None:
            from pyspark_barnabas.read.stream_planner import StreamPlanner  # not imported in tasks: it takes half a second

            self._planner = StreamPlanner(self._options)
        return self._planner


class OlderStreamReader(StreamReader):
    """A StreamReader for Spark before 4.2, which has no read limits and passes no start offset to `latestOffset`."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        for option, value in ((MAX_OFFSETS, options.max_offsets_per_trigger), (MIN_OFFSETS, options.min_offsets_per_trigger)):
            if value is not None:
                raise OptionError(option, "needs Spark 4.2 or later: before, Spark does not let Python sources limit a trigger.")
        super().__init__(options, schema)

    @error_first()
    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]
        return self._planning().latest(None, ReadAllAvailable()).to_json()
