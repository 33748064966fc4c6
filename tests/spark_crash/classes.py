"""Loads what drivers and executors of the pipeline load, so that the JVM can write its classes down for the next ones when it ends.

    classes.py DIRECTORY JAVA_OPTIONS

A JVM that starts with such an archive needs half of the time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


def main() -> int:
    directory, java = sys.argv[1:]
    builder = SparkSession.builder.master("local[2]")
    for name, value in {**SETTINGS, "spark.driver.extraJavaOptions": java, "spark.local.dir": directory}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    path = str(Path(directory) / "rows")
    spark.range(10).selectExpr("cast(id as string) as value").write.parquet(path)
    rows = spark.readStream.schema("value string").parquet(path).mapInArrow(unchanged, "value string").repartition(3, "value")
    query = rows.writeStream.format("parquet").option("path", f"{path}-again").option("checkpointLocation", f"{path}-checkpoint")
    query.trigger(availableNow=True).start().awaitTermination()
    return 0


def unchanged(batches: Iterator[Any]) -> Iterator[Any]:
    return batches


if __name__ == "__main__":
    sys.exit(main())
