"""What commands on Spark say where Spark, or what it needs, is not installed."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from barnabas.tools import demo
from barnabas.tools.spark import spark
from barnabas.tools.spark.spark import SparkMissing, environment, or_missing, require_java_version, require_spark

OPENJDK_17 = 'openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment (build 17.0.15+6)'
JAVA_8 = 'java version "1.8.0_202"\nJava(TM) SE Runtime Environment (build 1.8.0_202-b08)'


PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"


def install(least: str) -> str:
    return spark._INSTALL.format(least=least)


def no_spark(name: str) -> str:
    raise PackageNotFoundError(name)


def test_without_pyspark_the_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(spark, "version", no_spark)
    assert demo.main([]) == 1
    assert capsys.readouterr().err == f"barnabas: pyspark is not installed: {install('4.0')}\n"


def test_what_to_install_is_what_the_extra_spark_has() -> None:
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    assert install("4.0") == f"pip install {' '.join(repr(requirement) for requirement in extras['spark'])}"


@pytest.mark.parametrize(
    ("version", "pipelines", "message"),
    [
        ("3.5.1", False, "pyspark 3.5.1 is too old, this needs 4.0 or newer"),
        ("4.0.1", True, "pyspark 4.0.1 is too old, declarative pipelines need 4.1 or newer"),
    ],
)
def test_a_spark_that_is_too_old_is_named(monkeypatch: pytest.MonkeyPatch, version: str, pipelines: bool, message: str) -> None:
    monkeypatch.setattr(spark, "version", lambda name: version)
    with pytest.raises(SparkMissing, match=message):
        require_spark(pipelines=pipelines)


def test_a_package_that_spark_needs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "version", lambda name: "4.3.0")
    monkeypatch.setattr(spark, "_is_there", lambda module: module not in ("pandas", "yaml", "grpc"))
    with pytest.raises(SparkMissing, match=f"^pandas is not installed, and Spark needs it: {re.escape(install('4.0'))}$"):
        require_spark()
    with pytest.raises(SparkMissing, match=r"^pandas and PyYAML and grpcio are not installed"):
        require_spark(pipelines=True)


def test_without_java_the_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(spark, "version", lambda name: "4.3.0")
    monkeypatch.setattr(spark, "_is_there", lambda module: True)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkMissing, match=rf"needs Java 17 or newer and there is none in JAVA_HOME \({tmp_path}\): install one"):
        require_spark()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SparkMissing, match="there is none on this machine's PATH: install one"):
        require_spark()


def test_a_java_that_is_too_old_is_named() -> None:
    require_java_version(OPENJDK_17)
    with pytest.raises(SparkMissing, match="Spark needs Java 17 or newer and found Java 8: install one"):
        require_java_version(JAVA_8)
    with pytest.raises(SparkMissing, match="found Java: install one"):
        require_java_version("no such thing")


def test_what_is_missing_is_one_line_and_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    def run() -> int:
        raise SparkMissing("something is not installed")

    assert or_missing(run) == 1
    assert capsys.readouterr().err == "barnabas: something is not installed\n"


def test_sparks_workers_are_this_python_and_find_this_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/of/the/user")
    variables = environment()
    assert variables["PYSPARK_PYTHON"] == sys.executable
    assert variables["PYTHONPATH"].split(os.pathsep) == [str(Path(spark.__file__).parents[3]), "/of/the/user"]
