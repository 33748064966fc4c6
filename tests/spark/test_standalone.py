"""On a Spark cluster of two workers, started here: the source and its exactly-once sink, shipped to executors as a file."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import pyspark
import pytest

from barnabas.tools.spark.spark_home import home_settings
from tests import broker, spark_session
from tests.broker import TopicMaker
from tests.jvm import spark_environment
from tests.spark import queries
from tests.spark.command import barnabas
from tests.spark.topic_contents import Sent, read, send

SPARK = Path(pyspark.__file__).parent
MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
WORKER = re.compile(r"Successfully registered with master")
START_S = 300
TIMEOUT_S = 900
RECORDS = [Sent(f"k{number}", f"v{number}", 1_763_294_400_000 + number, number % 4) for number in range(400)]
# Says on which executors it ran and from where they had our packages; then copies a topic through a shuffle.
APPLICATION = """
import json, os, sys
from pyspark.sql import SparkSession
from queries import finish

servers, source, target, checkpoint = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()

def whence(_):
    import barnabas, pyspark_barnabas
    yield os.getcwd(), barnabas.__file__, pyspark_barnabas.__file__

print(json.dumps(spark.sparkContext.parallelize(range(8), 8).mapPartitions(whence).distinct().collect()), flush=True)
options = {"kafka.bootstrap.servers": servers, "subscribe": source, "startingOffsets": "earliest"}
rows = spark.readStream.format("barnabas").options(**options).load().select("key", "value", "timestamp").repartition(4, "key")
sink = {"kafka.bootstrap.servers": servers, "topic": target, "exactlyOnce": "true", "transactionalIdPrefix": target}
finish(lambda: rows.writeStream.format("barnabas").options(**sink, checkpointLocation=checkpoint).trigger(availableNow=True).start())
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A home for all processes of this Spark, and flags with which they start fast."""
    return spark_environment() | home_settings(tmp_path_factory.mktemp("spark") / "home")


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory, home: dict[str, str]) -> Generator[str, None, None]:
    """The address of a cluster of two workers, which have no path to our packages from here."""
    directory = tmp_path_factory.mktemp("standalone")
    spark_session.python_environment()
    command = ["env", "-u", "PYTHONPATH", *(f"{name}={value}" for name, value in home.items()), str(SPARK / "bin" / "spark-class")]
    with ExitStack() as stack:
        address = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        _, started = stack.enter_context(broker.started([*command, "org.apache.spark.deploy.master.Master", *address], MASTER, START_S))
        for number in range(2):
            worker = ["--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g"]
            worker += ["--work-dir", str(directory / f"worker-{number}"), started[1]]
            stack.enter_context(broker.started([*command, "org.apache.spark.deploy.worker.Worker", *worker], WORKER, START_S))
        yield started[1]


@pytest.mark.timeout(2 * TIMEOUT_S)
@pytest.mark.parametrize(
    ("package", "options"),
    [
        ("barnabas.zip", ["--py-files", "{package}"]),
        ("barnabas.tar.gz", ["--archives", "{package}#shipped", "--conf", "spark.executorEnv.PYTHONPATH=./shipped"]),
    ],
)
def test_an_application_runs_on_two_workers_with_what_it_was_shipped(
    master: str, home: dict[str, str], our_broker: str, our_topic: TopicMaker, tmp_path: Path, package: str, options: list[str]
) -> None:
    source, target = our_topic("source", partitions=4), our_topic("target", partitions=2)
    send(our_broker, source, RECORDS)
    assert barnabas(tmp_path, "pipeline", "package", package).returncode == 0
    (tmp_path / "application.py").write_text(APPLICATION)
    shutil.copy(queries.__file__, tmp_path)  # found beside the application
    shipped = [option.format(package=tmp_path / package) for option in options]
    settings = {
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    command = [str(SPARK / "bin" / "spark-submit"), "--master", master, *shipped]
    command += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    arguments = ["application.py", our_broker, source, target, str(tmp_path / "checkpoint")]
    environ = {**os.environ, **home, "PYSPARK_PYTHON": sys.executable}  # our packages are on the driver's path and on nobody else's
    ran = subprocess.run([*command, *arguments], cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=TIMEOUT_S, env=environ)
    assert ran.returncode == 0, ran.stderr[-5000:]
    places = [place for line in ran.stdout.splitlines() if line.startswith("[[") for place in json.loads(line)]
    assert len({directory for directory, *_ in places}) == 2  # of executors, one on each worker
    name = "barnabas.zip" if package.endswith(".zip") else "shipped"
    assert all(name in Path(module).parts for _, *modules in places for module in modules)
    copied = read(our_broker, target)
    assert sorted((record.key, record.value, record.timestamp_ms) for record in copied) == sorted(
        (record.key, record.value, record.timestamp_ms) for record in RECORDS
    )
