"""Spark for the commands that need it: checks what must be installed, and sets what must be set before its JVM starts.

A missing package is reported in one line that says what to install. Only this module imports Spark, and only when such a command runs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from barnabas.tools.spark.spark_home import home_set

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_MIN: Final = 17
SPARK_MIN: Final = (4, 0)
PIPELINES_MIN: Final = (4, 1)
# The packages of the extra `spark` in pyproject.toml, by name: no index has a barnabas whose extra could be installed.
_INSTALL: Final = "pip install 'pyspark[pipelines]>={least}' 'numpy>=1.25' 'pandas>=2,<3' 'pyarrow>=17'"
_INSTALL_JAVA: Final = "install one (on Debian or Ubuntu: apt install openjdk-17-jre-headless) or set JAVA_HOME to where it is"
# Module, purpose and package; `pyspark` alone installs none of them.
_NEEDED: Final = {"numpy": "numpy", "pyarrow": "pyarrow", "pandas": "pandas"}
_NEEDED_BY_PIPELINES: Final = {"yaml": "PyYAML", "grpc": "grpcio", "grpc_status": "grpcio-status", "google.protobuf": "protobuf"}
_JAVA_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')
_LOG_TAIL_LINES: Final = 20


class SparkMissing(Exception):
    """Something must be installed before the command can run; the text is printed for the user."""


def require_spark(*, pipelines: bool = False) -> str:
    """The version of the installed Spark. Raises SparkMissing if Spark or something that it needs is missing."""
    least = PIPELINES_MIN if pipelines else SPARK_MIN
    install = _INSTALL.format(least=".".join(map(str, least)))
    try:
        installed = version("pyspark")
    except PackageNotFoundError:
        raise SparkMissing(f"pyspark is not installed: {install}") from None
    if _numbers(installed) < least:
        purpose = "declarative pipelines need" if pipelines else "this needs"
        raise SparkMissing(f"pyspark {installed} is too old, {purpose} {'.'.join(map(str, least))} or newer: {install}")
    needed = {**_NEEDED, **(_NEEDED_BY_PIPELINES if pipelines else {})}
    missing = [package for module, package in needed.items() if not _is_there(module)]
    if missing:
        raise SparkMissing(f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed, and Spark needs it: {install}")
    _require_java()
    return installed


def require_java_version(text: str) -> None:
    """Raises SparkMissing if the output of `java -version` is of a Java that Spark does not support."""
    number = _JAVA_VERSION.search(text)
    if number is None or int(number[1]) < JAVA_MIN:
        what = "Java" if number is None else f"Java {number[1]}"
        raise SparkMissing(f"Spark needs Java {JAVA_MIN} or newer and found {what}: {_INSTALL_JAVA}")


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None or not os.access(java, os.X_OK):
        where = f"there is none in JAVA_HOME ({home})" if home else "there is none on this machine's PATH"
        raise SparkMissing(f"Spark needs Java {JAVA_MIN} or newer and {where}: {_INSTALL_JAVA}")
    require_java_version(subprocess.run([java, "-version"], capture_output=True, encoding="utf-8", errors="replace").stderr)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2])


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False  # its parent package is not installed


def environment() -> dict[str, str]:
    """Environment variables for Spark's processes: its Python workers use this Python and this Barnabas."""
    path = os.pathsep.join(
        dict.fromkeys(filter(None, (str(Path(__file__).parents[3]), *os.environ.get("PYTHONPATH", "").split(os.pathsep))))
    )
    return {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable, "PYTHONPATH": path}


def open_session(name: str, settings: Mapping[str, str], log: Path) -> SparkSession:
    """A Spark session on this machine; the output of its JVM goes to the file `log`."""
    os.environ.update(environment())
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # one machine: no other connects, and its host name need not resolve
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    with _output_of_children(log), home_set():
        try:
            return builder.getOrCreate()
        except Exception as error:
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:])
            raise SparkMissing(f"Spark did not start: {' '.join(str(error).split())}\n{tail}") from error


@contextmanager
def _output_of_children(log: Path) -> Generator[None, None, None]:
    """Redirects the output of processes started in this context to a file: a JVM keeps its standard output and error for life."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = {number: os.dup(number) for number in (1, 2)}
    with open(log, "ab") as file:
        for number in kept:
            os.dup2(file.fileno(), number)
    try:
        yield
    finally:
        for number, old in kept.items():
            os.dup2(old, number)
            os.close(old)


def or_missing(run: Callable[[], int]) -> int:
    """Runs a command; prints one line if something is missing."""
    try:
        return run()
    except SparkMissing as missing:
        print(f"barnabas: {missing}", file=sys.stderr)
        return 1
