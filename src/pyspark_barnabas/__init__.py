"""Barnabas in Spark: `spark.read.format("barnabas")`, and the same for streams and for writing.

Spark finds this package by its name, looks for `DefaultSource` in it and registers that under its own name; nobody has to call
`register`. Nothing else is imported here: Spark does this at the start of every session.
"""

from __future__ import annotations

from pyspark_barnabas.source import DefaultSource

__all__ = ["DefaultSource"]
