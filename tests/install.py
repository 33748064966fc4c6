"""Barnabas installed as a user installs it: by pip, with build isolation, into an environment that holds nothing else.

`python -m tests.install` (make install-check) is the whole proof: from a clone, from an sdist and from the wheels in dist/ for this Python,
compiled and plain Python. It compiles everything twice, which takes minutes; tests/integration/test_install.py is the part of it that every
run of the suite can afford.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from time import monotonic
from typing import Final

from tests.broker import READY, START_TIMEOUT_S, STOP_TIMEOUT_S, started
from tests.unit.test_compiled import HOT

ROOT: Final = Path(__file__).parents[1]
LISTED_FILES: Final = "src/barnabas.egg-info/SOURCES.txt"
FORMS: Final = ("pure", "compiled")
SOURCES: Final = ("wheel", "clone", "sdist")
BUILD_TIMEOUT_S: Final = 3600  # compiling takes 3 to 8 minutes on two cores
COLD_START_S_MAX: Final = 1.5  # from the command to the line that says ready, best of COLD_STARTS, on a machine that is not busy
COLD_STARTS: Final = 3
COMMAND_TIMEOUT_S: Final = 300  # for what takes seconds on a machine that is not busy
PIP: Final = ("-m", "pip")
_PIP_SETTINGS: Final = {
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_COMPILE": "1",
}  # half the time of an install, of mypy above all, is bytecode
# What would let a build or an installed program see this checkout, or choose the form of a build.
_NOT_PASSED_ON: Final = ("BARNABAS_PURE", "BARNABAS_EXPECT", "CC", "CFLAGS", "MYPYPATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
_BUILD_SDIST: Final = "import sys; from setuptools.build_meta import build_sdist; build_sdist(sys.argv[1])"
_ORIGINS: Final = "import importlib, json, sys; print(json.dumps([importlib.import_module(name).__file__ for name in sys.argv[1:]]))"


def run(
    command: Sequence[str | Path],
    settings: Mapping[str, str] | None = None,
    *,
    cwd: Path,
    feed: str = "",
    timeout_s: float = COMMAND_TIMEOUT_S,
) -> str:
    """What a command printed. It finds nothing of this checkout in its environment; one that fails is an AssertionError with its output."""
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_PASSED_ON}
    done = subprocess.run(
        [*map(str, command)],
        input=feed,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        env={**environment, **_PIP_SETTINGS, **(settings or {})},
        cwd=cwd,
        timeout=timeout_s,
        check=False,
    )
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))} ended with code {done.returncode}:\n{done.stdout}")
    return done.stdout


def tracked_files() -> list[str]:
    """The files of a clone of this checkout, with what is changed in it. Where there is no git, as in an sdist, setuptools has the list."""
    if (ROOT / ".git").exists():
        names = run(["git", "ls-files", "-z"], cwd=ROOT).split("\0")
    else:
        names = [name for name in (ROOT / LISTED_FILES).read_text().splitlines() if ".egg-info/" not in name]
    return sorted(name for name in names if (ROOT / name).is_file())


def clone(target: Path) -> Path:
    for name in tracked_files():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target / name)
    return target


def sdist(source: Path, target: Path) -> Path:
    run([sys.executable, "-c", _BUILD_SDIST, target], cwd=source)
    (made,) = target.glob("*.tar.gz")
    return made


def unpacked(archive: Path, target: Path) -> Path:
    with tarfile.open(archive) as files:
        files.extractall(target, filter="data")
    (directory,) = target.iterdir()
    return directory


def wheel(source: Path, target: Path, settings: Mapping[str, str]) -> tuple[Path, str]:
    """A wheel that pip built of a directory, in isolation, and what was printed meanwhile."""
    command: list[str | Path] = [sys.executable, *PIP, "wheel", "-v", "--no-deps", "--wheel-dir", target, source]
    printed = run(command, settings, cwd=target.parent, timeout_s=BUILD_TIMEOUT_S)
    (made,) = target.glob("*.whl")
    return made, printed


@dataclass(frozen=True)
class Environment:
    """A virtual environment; `work` is the directory that its commands run in, far from any sources."""

    bin: Path
    work: Path

    @classmethod
    def empty(cls, directory: Path) -> Environment:
        made = cls.of(directory)
        made.work.mkdir(parents=True)
        run([sys.executable, "-m", "venv", directory / "venv"], cwd=made.work)
        return made

    @classmethod
    def of(cls, directory: Path) -> Environment:
        return cls(directory / "venv" / "bin", directory / "work")

    @property
    def wheels(self) -> Path:
        return self.work.parent / "wheels"

    @property
    def site_packages(self) -> Path:
        (site_packages,) = self.bin.parent.glob("lib/python*/site-packages")
        return site_packages

    def run(self, command: str, *arguments: str | Path, feed: str = "") -> str:
        return run([self.bin / command, *arguments], cwd=self.work, feed=feed)

    def install(self, *what: str | Path, settings: Mapping[str, str] | None = None) -> None:
        run([self.bin / "python", *PIP, "install", "-q", *what], settings, cwd=self.work, timeout_s=BUILD_TIMEOUT_S)

    def packages(self) -> set[str]:
        listed = json.loads(self.run("python", *PIP, "list", "--format", "json"))
        return {package["name"].lower().replace("_", "-") for package in listed} - {"pip", "setuptools"}

    def form(self) -> str:
        """How the hot modules are installed: compiled, pure, or a mixture that would be a mistake of setup.py."""
        names = [module.replace("/", ".") for module in HOT]
        origins = json.loads(self.run("python", "-c", _ORIGINS, *names))
        compiled = [origin.endswith(tuple(EXTENSION_SUFFIXES)) for origin in origins]
        return "compiled" if all(compiled) else "mixed" if any(compiled) else "pure"

    def send_and_read(self, value: str, barnabas: Sequence[str | Path] = ()) -> str:
        """What a consumer of this environment reads from a broker of it, or one that the command `barnabas` starts, after its producer
        sent it. The broker must end with code 0."""
        with started(self.up(*barnabas), READY, START_TIMEOUT_S) as (broker, address):
            server = ("--bootstrap-server", f"{address[1]}:{address[2]}", "--topic", "greetings")
            self.run("barnabas", "console-producer", *server, feed=f"{value}\n")
            read = self.run("barnabas", "console-consumer", *server, "--from-beginning", "--max-messages", "1")
            broker.terminate()
            assert broker.wait(STOP_TIMEOUT_S) == 0
        return read.splitlines()[0]

    def cold_start_s(self) -> float:
        """From `barnabas up` to ready, in a data directory that is new."""
        shutil.rmtree(self.work / "data", ignore_errors=True)
        begin = monotonic()
        with started(self.up(), READY, START_TIMEOUT_S) as (broker, _):
            seconds = monotonic() - begin
            broker.terminate()
            broker.wait(STOP_TIMEOUT_S)
        return seconds

    def up(self, *barnabas: str | Path) -> list[str]:
        unset = [word for name in _NOT_PASSED_ON for word in ("-u", name)]
        command = [*map(str, barnabas)] or [str(self.bin / "barnabas")]
        return ["env", *unset, *command, "up", "--port", "0", "--data", str(self.work / "data")]


def prove(source: Path, form: str, directory: Path) -> str:
    """Installs a directory or an sdist into an empty environment, uses it, and returns a line about it."""
    environment = Environment.empty(directory)
    begin = monotonic()
    # Without pip's cache, which would keep the wheel of every sdist.
    environment.install("--no-cache-dir", source, settings={"BARNABAS_PURE": "1"} if form == "pure" else {})
    seconds = monotonic() - begin
    environment.run("python", *PIP, "check")
    assert environment.form() == form, environment.form()
    assert "console-producer" in environment.run("barnabas", "--help")
    assert environment.send_and_read("hello") == "hello"
    return (
        f"installed in {seconds:.0f} s with {', '.join(sorted(environment.packages()))}; a broker started, took and gave a record, stopped"
    )


def uvx(wheel: Path) -> list[str | Path]:
    """The command `barnabas` of a wheel, as `uvx` runs it in an environment of its own."""
    return [Path(sys.executable).with_name("uvx"), "--python", sys.executable, "--from", wheel, "barnabas"]


def prove_wheel(wheel: Path, form: str, directory: Path) -> str:
    """Installs a wheel into an empty environment, with bytecode as pip does it by itself, and uses it; then runs it by uvx."""
    environment = Environment.empty(directory)
    environment.install(wheel, settings={"PIP_NO_COMPILE": "0"})
    assert environment.form() == form, environment.form()
    assert environment.send_and_read("hello") == "hello"
    cold_start_s = min(environment.cold_start_s() for _ in range(COLD_STARTS))
    assert cold_start_s <= COLD_START_S_MAX, cold_start_s
    shutil.rmtree(environment.work / "data")
    assert environment.send_and_read("hello", uvx(wheel)) == "hello"
    size_mb = wheel.stat().st_size / 1e6
    return f"{size_mb:.1f} MB; `barnabas up` took and gave a record, installed by pip and run by uvx; ready after {cold_start_s:.2f} s"


def released_wheels() -> Iterator[tuple[str, Path]]:
    """Those of dist/, which `make wheels` writes, that this Python can install, with the form of each."""
    yield from (("pure", wheel) for wheel in (ROOT / "dist").glob("*-none-any.whl"))
    yield from (("compiled", wheel) for wheel in (ROOT / "dist").glob(f"*-cp{sys.version_info.major}{sys.version_info.minor}-*.whl"))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.install", description="Install wheels, a clone and an sdist, compiled and pure.")
    parser.add_argument("--form", choices=FORMS, action="append", help="only this form")
    parser.add_argument("--source", choices=SOURCES, action="append", help="only from this; the wheels are those in dist/")
    given = parser.parse_args()
    forms, sources = given.form or FORMS, given.source or SOURCES
    with tempfile.TemporaryDirectory(prefix="barnabas-install-") as place:
        work = Path(place)
        for form, built in released_wheels() if "wheel" in sources else ():
            if form in forms:
                _say(built.name, prove_wheel(built, form, work / f"wheel-{form}-environment"))
        for form in forms:
            if "clone" in sources:
                _say(f"{form} from a clone", prove(clone(work / f"clone-{form}"), form, work / f"clone-{form}-environment"))
            if "sdist" in sources:
                archive = sdist(clone(work / f"source-{form}"), work / f"dist-{form}")
                _say(f"{form} from {archive.name}", prove(archive, form, work / f"sdist-{form}-environment"))


def _say(what: str, outcome: str) -> None:
    print(f"{what}: {outcome}", flush=True)


if __name__ == "__main__":
    main()
