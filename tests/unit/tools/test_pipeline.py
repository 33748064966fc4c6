"""`barnabas pipeline`: what a new project holds, and what Spark is given."""

from __future__ import annotations

import ast
import os
import shlex
import socket
import subprocess
import sys
import tarfile
import zipfile
from argparse import Namespace
from pathlib import Path

import pytest
import yaml

from barnabas.tools import pipeline
from barnabas.tools.spark.pipeline_project import ProjectRefused, find_spec_file, make_project, template_names
from barnabas.tools.spark.pipeline_run import cluster_options, read_configuration, require_free, submit_arguments, where_it_runs

LOG = Path("/tmp/log")


def run_options(**given: object) -> Namespace:
    return Namespace(**{"master": None, "remote": None, "conf": [], **given})


def settings(arguments: str) -> dict[str, str]:
    words = shlex.split(arguments)
    assert words[-1] == "pyspark-shell"
    assert set(words[:-1:2]) <= {"--conf"}
    return dict(word.partition("=")[::2] for word in words[1::2])


@pytest.mark.parametrize("template", template_names())
def test_a_project_of_each_template_is_whole(tmp_path: Path, template: str) -> None:
    project = make_project(tmp_path, "shop", template, "broker:9092")
    spec = yaml.safe_load((project / "spark-pipeline.yml").read_text())
    assert spec == {
        "name": "shop",
        "storage": f"{project.as_uri()}/storage",
        "configuration": {"spark.barnabas.servers": "broker:9092", "spark.barnabas.group": "shop"},
        "libraries": [{"glob": {"include": "transformations/**"}}],
    }
    ast.parse((project / "transformations" / f"{template}.py").read_text())
    assert template_names()[template] in (project / "README.md").read_text()


def test_the_readme_starts_the_broker_that_the_project_uses(tmp_path: Path) -> None:
    readme = (make_project(tmp_path, "shop", "windows", "localhost:9192") / "README.md").read_text()
    assert "    barnabas up --port 9192 &\n    barnabas topics --bootstrap-server localhost:9192 --create --topic orders\n" in readme
    readme = (make_project(tmp_path, "far", "windows", "kafka1:9092,kafka2:9092") / "README.md").read_text()
    assert "barnabas up" not in readme
    assert "To try it with the brokers at kafka1:9092,kafka2:9092:" in readme


def test_new_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert pipeline.main(["new", "shop", "--template", "archive"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == ["  cd shop", "  barnabas pipeline run"]
    assert pipeline.main(["new", "shop"]) == 1
    assert "is there already; choose another name" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", "../up", "a b", "1st", "a/b", "x" * 65])
def test_a_name_that_is_no_directorys_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ProjectRefused, match="a name begins with a letter"):
        make_project(tmp_path, name, "windows", "localhost:9092")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_template_is_refused_with_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(ProjectRefused, match=r"--template magic: there are archive, .*windows"):
        make_project(tmp_path, "shop", "magic", "localhost:9092")


def test_a_spec_is_found_in_a_directory_above(tmp_path: Path) -> None:
    project = make_project(tmp_path, "shop", "windows", "localhost:9092")
    assert find_spec_file(project / "transformations") == project / "spark-pipeline.yml"
    with pytest.raises(ProjectRefused, match="barnabas pipeline new NAME"):
        find_spec_file(tmp_path)


def test_a_spec_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert pipeline.main(["run", "--spec", "nowhere.yml"]) == 1
    assert capsys.readouterr().err == "barnabas: --spec nowhere.yml: there is no such file\n"


@pytest.mark.parametrize(("text", "problem"), [("a: [", "expected"), ("configuration: 5", "configuration holds names with values")])
def test_a_spec_that_cannot_be_read_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    spec = tmp_path / "spark-pipeline.yml"
    spec.write_text(text)
    with pytest.raises(ProjectRefused, match=problem):
        read_configuration(spec)


def test_on_this_machine_tables_are_kept_with_the_project(tmp_path: Path) -> None:
    project = tmp_path / "with a blank"
    spark_settings = settings(submit_arguments(run_options(), project, {}, LOG))
    assert spark_settings["spark.sql.catalogImplementation"] == "hive"
    assert spark_settings["spark.hadoop.javax.jdo.option.ConnectionURL"] == f"jdbc:derby:;databaseName={project}/catalog;create=true"
    assert spark_settings["spark.sql.warehouse.dir"] == (project / "tables").as_uri()
    assert spark_settings["spark.eventLog.dir"] == "file:///tmp/log"
    assert spark_settings["spark.sql.shuffle.partitions"] == str(os.cpu_count())


def test_the_project_and_then_the_command_line_have_the_last_word(tmp_path: Path) -> None:
    given = run_options(conf=["spark.eventLog.enabled=false", "spark.x=y"])
    spark_settings = settings(submit_arguments(given, tmp_path, {"spark.sql.warehouse.dir": "s3://w"}, LOG))
    assert [name for name in spark_settings if name.startswith("spark.eventLog.")] == ["spark.eventLog.enabled"]
    assert spark_settings["spark.x"] == "y"
    assert "spark.sql.warehouse.dir" not in spark_settings
    assert cluster_options(given) == ["--conf", "spark.eventLog.enabled=false", "--conf", "spark.x=y"]


def test_a_second_pipeline_on_a_machine_is_refused_before_it_starts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(ProjectRefused, match=f"port {port} of this machine is in use.* wait .* or name a server"):
            require_free(port)
    require_free(port)


def test_where_a_pipeline_runs_is_what_the_user_has_said_last(monkeypatch: pytest.MonkeyPatch) -> None:
    assert where_it_runs(run_options(), {}) == "local"
    assert where_it_runs(run_options(), {"spark.master": "yarn"}) == "yarn"
    assert where_it_runs(run_options(master="spark://a:1", conf=["spark.master=yarn"]), {}) == "spark://a:1"
    assert where_it_runs(run_options(remote="sc://a"), {"spark.master": "yarn"}) == "sc://a"
    monkeypatch.setenv("SPARK_REMOTE", "sc://b")
    assert where_it_runs(run_options(), {}) == "sc://b"


def test_a_cluster_keeps_its_own_catalog(tmp_path: Path) -> None:
    given = run_options(master="spark://there:7077")
    assert cluster_options(given) == ["--master", "spark://there:7077"]
    assert "spark.sql.catalogImplementation" not in settings(submit_arguments(given, tmp_path, {}, LOG))


def test_a_server_elsewhere_is_told_nothing(tmp_path: Path) -> None:
    given = run_options(remote="sc://there")
    assert cluster_options(given) == ["--remote", "sc://there"]
    assert settings(submit_arguments(given, tmp_path, {}, LOG)) == {}


def test_a_zip_is_plain_python_that_can_be_imported_from_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "barnabas.zip"
    assert pipeline.main(["package", str(target)]) == 0
    assert "spark-submit --py-files barnabas.zip" in capsys.readouterr().out
    names = zipfile.ZipFile(target).namelist()
    assert not [name for name in names if name.endswith((".so", ".pyc"))]
    code = "import barnabas.records.builder as module, pyspark_barnabas.pipelines; print(module.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(target)}
    output = subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert output.stdout.strip() == f"{target}/barnabas/records/builder.py"


def test_a_tar_holds_the_dependencies_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "barnabas.tar.gz"
    assert pipeline.main(["package", str(target)]) == 0
    assert "--archives barnabas.tar.gz#barnabas --conf spark.executorEnv.PYTHONPATH=./barnabas" in capsys.readouterr().out
    with tarfile.open(target) as archive:
        tops = {name.split("/")[0] for name in archive.getnames()}
    assert {"barnabas", "pyspark_barnabas", "cramjam", "google_crc32c"} <= tops
    assert list(tmp_path.iterdir()) == [target]


def test_a_package_of_another_kind_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pipeline.main(["package", str(tmp_path / "barnabas.rar")]) == 1
    assert "name it .zip, for --py-files, or .tar.gz, for --archives" in capsys.readouterr().err
    assert pipeline.main(["package", str(tmp_path / "nowhere" / "b.zip")]) == 1
    assert "No such file or directory" in capsys.readouterr().err
