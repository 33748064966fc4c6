"""Apache Kafka's own classes as the judge: fetches its jars from Maven once, and runs a main class or a Java file with them.

The jars go to the user's cache (`$XDG_CACHE_HOME/barnabas`), not into the checkout. Where Java or Maven is missing, the tests that need
them are skipped with a line that says what to install; `make test` installs both where it may.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests import jvm
from tests.jvm import cache_dir

VERSION = "4.2.0"
JAVA_VERSION_MIN = 17
ZOOKEEPER_TOOLS_VERSION = "2.8.2"
ZOOKEEPER_MODE_VERSION = "3.9.1"
CLIENT_VERSIONS = ("2.8.2", "0.9.0.1")  # older clients, each with its own dependencies
ENCODING = ("-Dfile.encoding=UTF-8", "-Dsun.stdout.encoding=UTF-8")  # the same output on every locale
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"

Artifact = tuple[str, str, str]  # group, name, version
LOGGER: Artifact = ("org.slf4j", "slf4j-simple", "1.7.36")
BROKER: tuple[Artifact, ...] = (
    ("org.apache.kafka", "kafka_2.13", VERSION),
    ("org.apache.kafka", "kafka-tools", VERSION),
    ("org.apache.kafka", "kafka-storage", VERSION),
    LOGGER,
)
# Spark's own Kafka connector, in the newest mix of versions that resolves and works with the Spark the tests run on.
JMX_AGENT: Artifact = ("io.prometheus.jmx", "jmx_prometheus_javaagent", "1.0.1")
SPARK_CONNECTOR_VERSION = "4.2.0"
SPARK_CONNECTOR: tuple[Artifact, ...] = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", SPARK_CONNECTOR_VERSION),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.13.1"),
)


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


class Unavailable(Exception):
    """Apache Kafka cannot run here; the message says what to do about it."""


def dump_log(arguments: Sequence[str], cwd: Path | None = None) -> Result:
    """Apache Kafka's kafka-dump-log."""
    return run("kafka.tools.DumpLogSegments", arguments, cwd)


def run(main_class: str, arguments: Sequence[str], cwd: Path | None = None) -> Result:
    """Runs a Java main class with Apache Kafka on its class path; skips the test where that is not possible."""
    jars = available(prepare)
    done = subprocess.run([*java(jars), main_class, *arguments], cwd=cwd, capture_output=True, timeout=240, check=False)
    return Result(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))


def java(jars: Path, *more: str, then: str = "") -> list[str]:
    """A JVM that starts fast, with these jars and `more` flags; `then` follows the jars on the class path."""
    return ["java", *jvm.flags(jars), *ENCODING, *more, "-cp", f"{jars}/*{then and f':{then}'}"]


def source_command(jars: Path, program: Path, *arguments: str) -> list[str]:
    """The command that compiles and runs one Java file with these jars; in CI and in `make test` there is a JDK for it."""
    return [*java(jars, "-Xmx384m", QUIET), str(program), *arguments]


def available(make: Callable[[], Path]) -> Path:
    """What `make` gives; skips the test where that is not possible here."""
    try:
        return make()
    except Unavailable as problem:
        pytest.skip(str(problem))


@cache
def prepare() -> Path:
    """The directory of Apache Kafka's jars, fetched if need be."""
    return _fetch(f"kafka-{VERSION}", BROKER)


@cache
def client_jars(version: str) -> Path:
    """The directory of the jars of an older Java client; today's is among the broker's."""
    if version == VERSION:
        return prepare()
    return _fetch(f"kafka-clients-{version}", (("org.apache.kafka", "kafka-clients", version), LOGGER))


@cache
def zookeeper_tools() -> Path:
    """The directory of the jars of the last Kafka whose tools wrote to ZooKeeper themselves."""
    return _fetch(f"kafka-{ZOOKEEPER_TOOLS_VERSION}", (("org.apache.kafka", "kafka_2.13", ZOOKEEPER_TOOLS_VERSION), LOGGER))


@cache
def zookeeper_mode() -> Path:
    """The directory of the jars of the last Kafka whose brokers met in ZooKeeper."""
    return _fetch(f"kafka-{ZOOKEEPER_MODE_VERSION}", (("org.apache.kafka", "kafka_2.13", ZOOKEEPER_MODE_VERSION), LOGGER))


@cache
def spark_connector() -> Path:
    """The directory of the jars of Spark's own Kafka connector; what they depend on comes with Spark."""
    return _fetch(f"spark-connector-{SPARK_CONNECTOR_VERSION}", SPARK_CONNECTOR, alone=True)


@cache
def jmx_agent() -> Path:
    """The jar of the agent that shows the MBeans of a JVM to Prometheus."""
    _, name, version = JMX_AGENT
    return _fetch(f"{name}-{version}", (JMX_AGENT,)) / f"{name}-{version}.jar"


def _fetch(name: str, artifacts: Sequence[Artifact], *, alone: bool = False) -> Path:
    """Fetches artifacts, and all they depend on unless they come `alone`, with Maven.

    Two processes may do it at once: the first to finish wins.
    """
    _check_java()
    jars = cache_dir() / name
    if jars.is_dir():
        return jars
    if not shutil.which("mvn"):
        raise Unavailable("Apache Kafka's jars come from Maven: install it (Debian: apt-get install maven)")
    cache_dir().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache_dir()) as work:
        pom = Path(work, "pom.xml")
        pom.write_text(_pom(artifacts, alone))
        fetched = Path(work, "jars")
        maven = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={fetched}"]
        done = subprocess.run(maven, capture_output=True, text=True, timeout=1200, check=False)
        if done.returncode != 0:
            raise Unavailable(f"Maven could not fetch {name}: {done.stdout.strip()[-500:]}")
        put_in_place(fetched, jars)
    return jars


def put_in_place(made: Path, place: Path) -> None:
    """Renames a finished directory to where everybody looks for it, unless another process was faster."""
    try:
        made.rename(place)
    except OSError:
        if not place.is_dir():
            raise


def _check_java() -> None:
    advice = f"install a JDK {JAVA_VERSION_MIN} or newer (Debian: apt-get install openjdk-17-jdk-headless)"
    if not shutil.which("java") or not shutil.which("javac"):
        raise Unavailable(f"Apache Kafka needs Java: {advice}")
    output = subprocess.run(["java", "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    major = re.search(r'version "(\d+)', output)
    if not major or int(major[1]) < JAVA_VERSION_MIN:
        raise Unavailable(f"Apache Kafka {VERSION} needs a newer Java than the one found: {advice}")


def _pom(artifacts: Sequence[Artifact], alone: bool) -> str:
    others = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>" if alone else ""
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>{others}</dependency>"
        for group, artifact, version in artifacts
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>barnabas</groupId><artifactId>kafka-jars</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )


if __name__ == "__main__":
    try:
        print(f"Apache Kafka {VERSION}: {len(list(prepare().glob('*.jar')))} jars ready")
        for old in CLIENT_VERSIONS:
            print(f"kafka-clients {old}: {len(list(client_jars(old).glob('*.jar')))} jars ready")
        print(f"Apache Kafka {ZOOKEEPER_MODE_VERSION}: {len(list(zookeeper_mode().glob('*.jar')))} jars ready")
        print(f"Spark's Kafka connector {SPARK_CONNECTOR_VERSION}: {len(list(spark_connector().glob('*.jar')))} jars ready")
    except Unavailable as problem:
        print(f"The tests against Apache Kafka will be skipped: {problem}", file=sys.stderr)
