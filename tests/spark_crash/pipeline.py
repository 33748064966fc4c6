"""The pipeline that is killed, in a process of its own: reads a topic, shuffles it, and writes it exactly once into another.

    pipeline.py BOOTSTRAP SOURCE TARGET PREFIX DIRECTORY MASTER

It takes all there is in small batches and ends with code 0; by whatever goes wrong it ends with another code, and whoever started it starts
another. It may be killed at any moment.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

ROWS_PER_BATCH = "60"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.codegen.wholeStage": "false",  # for a few rows it takes longer to compile a query than to run it
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "3",
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.task.maxFailures": "4",
    "spark.network.timeout": "60s",
    "spark.executor.heartbeatInterval": "5s",
    "spark.speculation": "true",  # so that two attempts at one task are not rare
    "spark.speculation.multiplier": "1.2",
    "spark.speculation.quantile": "0.3",
}


def main() -> int:
    bootstrap, source, target, prefix, directory, master = sys.argv[1:]
    builder = SparkSession.builder.master(master).appName(prefix)
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    builder = builder.config("spark.local.dir", str(Path(directory) / "scratch"))
    spark = builder.config("spark.sql.warehouse.dir", str(Path(directory) / "warehouse")).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    print("begun", flush=True)
    rows = (
        spark.readStream.format("barnabas")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", ROWS_PER_BATCH)
        .load()
    )
    query = (
        rows.selectExpr("cast(value as string) as value")
        .repartition(3, "value")
        .selectExpr("value as key", "concat('seen ', value) as value")
        .writeStream.format("barnabas")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", target)
        .option("exactlyOnce", "true")
        .option("transactionalIdPrefix", prefix)
        .option("kafka.transaction.timeout.ms", "600000")
        .option("checkpointLocation", str(Path(directory) / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return 0


if __name__ == "__main__":
    sys.exit(main())
