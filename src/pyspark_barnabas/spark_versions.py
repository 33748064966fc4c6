"""The differences between the supported versions of Spark.

Python sources have read limits and Trigger.AvailableNow since Spark 4.2. Older versions call `latestOffset` without a start offset, and a
stream reads everything in each trigger.
"""

from __future__ import annotations

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxRows,
        ReadMinRows,
        SupportsTriggerAvailableNow,
    )

    ADMISSION_CONTROL = True
except ImportError:
    from dataclasses import dataclass

    ADMISSION_CONTROL = False

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        pass

    @dataclass
    class ReadAllAvailable:  # type: ignore[no-redef]
        pass

    @dataclass
    class ReadMaxRows:  # type: ignore[no-redef]
        max_rows: int

    @dataclass
    class ReadMinRows:  # type: ignore[no-redef]
        min_rows: int


__all__ = ["ADMISSION_CONTROL", "ReadAllAvailable", "ReadMaxRows", "ReadMinRows", "SupportsTriggerAvailableNow"]
