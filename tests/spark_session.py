"""A real Spark for tests: one JVM with two cores, Spark's own Kafka connector beside ours, and Python workers that see our packages."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from barnabas.tools.spark.spark_home import home_set
from tests import jvm, kafka

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


@contextmanager
def set_for_a_while(variables: Mapping[str, str]) -> Generator[None, None, None]:
    """The environment of what is started in the block."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        yield


@contextmanager
def running(directory: Path, settings: dict[str, str] | None = None, connector: bool = True) -> Generator[SparkSession, None, None]:
    """A Spark session that lives as long as the block does, with its warehouse and scratch files in `directory`.

    `connector` says whether it has Spark's own Kafka connector, too.
    """
    jars = sorted(kafka.available(kafka.spark_connector).glob("*.jar")) if connector else []
    python_environment()
    from pyspark.sql import SparkSession  # starting a JVM: only once a test wants it

    builder = SparkSession.builder.master("local[2]").appName("barnabas tests")
    everything = {
        **SETTINGS,
        "spark.jars": ",".join(map(str, jars)),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.local.dir": str(directory / "scratch"),
        **(settings or {}),
    }
    for key, value in everything.items():
        builder = builder.config(key, value)
    with home_set(directory / "home"), set_for_a_while(jvm.spark_environment()):
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()
