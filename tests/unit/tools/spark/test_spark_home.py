"""The home that Spark gets where its user has chosen none."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from barnabas.tools.spark import spark_home
from barnabas.tools.spark.spark_home import home_set, home_settings, is_local


@pytest.fixture(autouse=True)
def nobody_has_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_it_has_all_that_spark_needs_but_no_zip_of_pyspark() -> None:
    home = Path(home_settings()["SPARK_HOME"])
    assert (home / "bin" / "spark-submit").is_file()
    assert list((home / "jars").glob("spark-core_*.jar"))
    assert not (home / "python").exists()


def test_it_is_made_once_for_all() -> None:
    with ThreadPoolExecutor(8) as several:
        homes = {settings["SPARK_HOME"] for settings in several.map(lambda _: home_settings(), range(16))}
    (home,) = homes
    assert os.listdir(Path(home).parent) == [Path(home).name]


def test_a_home_that_the_user_has_chosen_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    assert home_settings() == {}
    with home_set(tmp_path / "home"):
        assert os.environ["SPARK_HOME"] == "/opt/spark"
    assert os.environ["SPARK_HOME"] == "/opt/spark"
    assert not (tmp_path / "home").exists()


def test_it_is_set_for_the_time_of_a_start_alone(tmp_path: Path) -> None:
    with home_set(tmp_path / "home"):
        assert os.environ["SPARK_HOME"] == str(tmp_path / "home")
    assert "SPARK_HOME" not in os.environ


def test_where_there_is_no_place_for_it_spark_starts_without(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert home_settings(tmp_path / "file" / "home") == {}


def test_a_pyspark_without_java_in_it_has_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(spark_home, "_installed", lambda: None)
    assert home_settings(tmp_path / "home") == {}


@pytest.mark.parametrize(("master", "here"), [("local[2]", True), ("local-cluster[2,1,512]", True), ("yarn", False), ("sc://a", False)])
def test_it_is_for_a_spark_on_this_machine(master: str, here: bool) -> None:
    assert is_local(master) is here
