"""A real Spark for tests: one JVM with two cores, Spark's own Kafka connector beside ours, and Python workers that see our packages."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests import kafka

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Small and quiet: a query of a few rows is split into no more tasks than there are cores, and nothing is served or compressed for nobody.
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.driver.memory": "1g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.streaming.stopTimeout": "60s",
}


def python_environment() -> None:
    """Spark's Python workers are to be this Python, and to import what this process imports."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable


def spark_home(directory: Path) -> Path:
    """Spark without its own zip of PySpark: from that, which is not compiled, every Python worker starts four times as slowly."""
    installed = importlib.util.find_spec("pyspark")
    assert installed is not None and installed.origin is not None
    home = directory / "home"
    home.mkdir(exist_ok=True)
    for name in ("bin", "jars", "sbin"):
        (home / name).symlink_to(Path(installed.origin).parent / name)
    return home


@contextmanager
def running(directory: Path, settings: dict[str, str] | None = None) -> Generator[SparkSession, None, None]:
    """A Spark session that lives as long as the block does, with its warehouse and scratch files in `directory`."""
    jars = kafka.available(kafka.spark_connector)
    python_environment()
    before = os.environ.get("SPARK_HOME")
    os.environ["SPARK_HOME"] = str(spark_home(directory))
    from pyspark.sql import SparkSession  # starting a JVM: only once a test wants it

    builder = SparkSession.builder.master("local[2]").appName("barnabas tests")
    everything = {
        **SETTINGS,
        "spark.jars": ",".join(str(jar) for jar in sorted(jars.glob("*.jar"))),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.local.dir": str(directory / "scratch"),
        **(settings or {}),
    }
    for key, value in everything.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    if before is None:  # it is for this session alone
        del os.environ["SPARK_HOME"]
    else:
        os.environ["SPARK_HOME"] = before
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()
