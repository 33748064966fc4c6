"""What differs between the versions of Spark that the source works with, in one place.

Limits of what a trigger reads, and Trigger.AvailableNow, came to Python sources with Spark 4.2. Where they are missing Spark asks for the
latest offsets without saying from where on, and a stream reads all there is in each trigger.
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
