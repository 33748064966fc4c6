"""`pip install` of an sdist, in isolation and into an empty environment: what is built, what it runs, and what it says without its extras.

The hot modules are checked and translated to C as in any build, but not compiled: the C compiler of these tests refuses everything, as if
there were none. `make install-check` compiles them too.
"""

from __future__ import annotations

import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.install import BUILD_TIMEOUT_S, Environment, clone, sdist, tracked_files, unpacked, uvx, wheel
from tests.once import once

pytestmark = pytest.mark.timeout(BUILD_TIMEOUT_S)

ADDED_BY_SETUPTOOLS = {"PKG-INFO", "setup.cfg"}
DEPENDENCIES = {"barnabas", "cramjam", "cryptography", "google-crc32c", "google-re2", "librt", "mypy-extensions", "pyjwt", "uvloop"}
DEPENDENCIES |= {"cffi", "pycparser"}  # of cryptography

PROJECT_TEST = """
from barnabas.client import Consumer, Producer


def test_it(broker, broker_topic):
    with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        producer.send(broker_topic, b"hello")
    with Consumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([(broker_topic, 0)])
        batches = []
        while not batches:
            batches = consumer.poll_arrow(1)
        assert batches[0]["value"].to_pylist() == [b"hello"]
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    def make() -> str:
        work = tmp_path_factory.mktemp("sdist")
        return str(sdist(clone(work / "clone"), work / "dist"))

    return Path(once(tmp_path_factory, worker_id, "sdist", make))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, worker_id: str, archive: Path) -> Environment:
    """An environment with the wheel of plain Python and what it depends on, and nothing else."""

    def make() -> str:
        work = tmp_path_factory.mktemp("installed")
        built, _ = wheel(unpacked(archive, work / "source"), work / "wheels", {"BARNABAS_PURE": "1"})
        assert built.name.endswith("-py3-none-any.whl")
        environment = Environment.empty(work)
        environment.install(built)
        return str(work)

    return Environment.of(Path(once(tmp_path_factory, worker_id, "installed", make)))


def modules_and_data() -> set[str]:
    return {name.removeprefix("src/") for name in tracked_files() if name.startswith("src/") and name.count("/") > 1}


def test_an_sdist_holds_the_files_of_a_clone_and_nothing_else(archive: Path, tmp_path: Path) -> None:
    source = unpacked(archive, tmp_path / "source")
    files = {str(path.relative_to(source)) for path in source.rglob("*") if path.is_file()}
    assert {name for name in files - ADDED_BY_SETUPTOOLS if ".egg-info/" not in name} == set(tracked_files())


def test_an_isolated_build_has_all_that_it_needs_and_without_a_compiler_makes_plain_python(archive: Path, tmp_path: Path) -> None:
    built, printed = wheel(unpacked(archive, tmp_path / "source"), tmp_path / "wheels", {"CC": "false"})
    with zipfile.ZipFile(built) as files:
        assert {name for name in files.namelist() if ".dist-info/" not in name} == modules_and_data()
    assert "extensions were not compiled" in printed and "first install a C compiler and Python's headers" in printed


def test_an_empty_environment_gets_only_what_barnabas_depends_on_and_every_file_of_the_packages(installed: Environment) -> None:
    assert DEPENDENCIES <= installed.packages() <= DEPENDENCIES | {"absl-py"}
    assert installed.form() == "pure"
    missing = {name for name in modules_and_data() if not (installed.site_packages / name).is_file()}
    assert missing == set()


def test_the_installed_broker_starts_takes_and_gives_a_record_and_stops(installed: Environment) -> None:
    assert "console-producer" in installed.run("barnabas", "--help")
    assert installed.send_and_read("hello") == "hello"


def test_uvx_runs_a_broker_from_the_wheel(installed: Environment, tmp_path: Path) -> None:
    (built,) = installed.wheels.iterdir()
    elsewhere = replace(installed, work=tmp_path)  # another data directory
    assert elsewhere.send_and_read("hello", uvx(built)) == "hello"


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("import barnabas.client.serialization.avro", "Avro needs the package fastavro: pip install 'barnabas[avro]'"),
        (
            "import barnabas.client.serialization.json_schema",
            "JSON Schema needs the package jsonschema: pip install 'barnabas[json-schema]'",
        ),
        ("import barnabas.client.serialization.protobuf", "Protobuf needs the package protobuf: pip install 'barnabas[protobuf]'"),
        (
            "import barnabas.client.consumer.fetching.arrow_fetch",
            "poll_arrow needs the packages pyarrow and numpy: pip install 'barnabas[arrow]'",
        ),
        (
            "from barnabas.cli import main; raise SystemExit(main(['demo']))",
            "pyspark is not installed: pip install 'pyspark[pipelines]>=",
        ),
        (
            "from barnabas.cli import main; raise SystemExit(main(['audit', '.']))",
            "an audit is a Spark job: pip install 'pyspark>=4.0' pyarrow",
        ),
    ],
)
def test_where_an_extra_is_missing_the_error_says_what_to_install(installed: Environment, statement: str, error: str) -> None:
    done = subprocess.run(
        [installed.bin / "python", "-I", "-c", statement], cwd=installed.work, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert error in done.stderr.splitlines()[-1]


def test_a_project_adds_an_extra_by_name_and_pytest_and_gets_arrow_batches_and_the_fixtures(installed: Environment, tmp_path: Path) -> None:
    project = Environment.empty(tmp_path)
    project.install(*installed.wheels.iterdir())
    project.install("barnabas[arrow]", "pytest")  # Barnabas is the one that is there: no index has it
    (project.work / "test_it.py").write_text(PROJECT_TEST)
    assert "1 passed" in project.run("pytest", "-q", "-W", "error", "test_it.py")
