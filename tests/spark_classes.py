"""Loads what the Sparks of the tests load, so that their JVM can write these classes into an archive when it ends.

    python -m tests.spark_classes DIRECTORY

It runs queries of a session of its own, and of a client of Spark Connect. See tests/class_archives.py.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession, functions

from barnabas.tools.spark.spark_home import home_set
from tests.spark_session import SETTINGS, python_environment

CONNECT = "org.apache.spark.sql.connect.SparkConnectPlugin"
CLIENT = """
import sys
from pyspark.sql import SparkSession

address, path = sys.argv[1:]
spark = SparkSession.builder.remote(address).getOrCreate()
spark.read.parquet(path).selectExpr("id", "cast(value as binary) as value").where("id > 1").orderBy("id").collect()
rows = spark.readStream.schema("id long, value string").parquet(path).writeStream.format("parquet")
rows = rows.option("path", f"{path}-connect").option("checkpointLocation", f"{path}-connect-checkpoint")
rows.trigger(availableNow=True).start().awaitTermination()
"""


def main() -> int:
    directory = Path(sys.argv[1])
    python_environment()
    path = str(directory / "rows")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    spark = start(directory, port)
    spark.createDataFrame([(1, "a"), (2, "b")], ["id", "value"]).write.parquet(path)
    spark.range(10).selectExpr("id % 3 as k").groupBy("k").agg(functions.count("*")).orderBy("k").collect()
    rows = spark.readStream.schema("id long, value string").parquet(path).select("value")
    changed = rows.mapInArrow(unchanged, "value string").repartition(3, "value").writeStream.format("parquet")
    started = changed.option("path", f"{path}-again").option("checkpointLocation", f"{path}-checkpoint").trigger(availableNow=True).start()
    started.awaitTermination()
    use_connect(port, path)
    return 0


def start(directory: Path, connect_port: int) -> SparkSession:
    settings = {
        **SETTINGS,
        "spark.plugins": CONNECT,
        "spark.connect.grpc.binding.port": str(connect_port),
        "spark.local.dir": str(directory / "scratch"),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with home_set(directory / "home"):
        return builder.getOrCreate()


def use_connect(port: int, path: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_GATEWAY"))}
    subprocess.run([sys.executable, "-c", CLIENT, f"sc://127.0.0.1:{port}", path], env=environment, check=True)


def unchanged(batches: Iterator[Any]) -> Iterator[Any]:
    return batches


if __name__ == "__main__":
    sys.exit(main())
