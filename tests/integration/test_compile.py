"""scripts/compile on a checkout of one module, whose setup.py only pretends to compile: what it puts in place, and when.

`make install` runs the real build, and the whole suite runs on what it puts in place.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DEADLINE_S = 60
IN_BACKGROUND = "it is being compiled in the background for the next start (build/compile/log)"

# Holds on while the checkout has a file `hold`, fails where it has `broken`, or `stale` and something built before, and
# compiles nothing where it has `no-compiler`.
SETUP = """
import sys, sysconfig, time
from pathlib import Path
checkout, built = Path("../../.."), Path("build/lib")
(checkout / "builds").open("a").write("x")
while (checkout / "hold").exists():
    time.sleep(0.01)
if (checkout / "stale").exists() and built.exists():
    sys.exit("ValueError: value is not in list")
if (checkout / "broken").exists():
    sys.exit("src/barnabas/tiny.py:1: error: broken")
if not (checkout / "no-compiler").exists():
    (built / "barnabas").mkdir(parents=True, exist_ok=True)
    for name in ("barnabas_group__mypyc", "barnabas/tiny"):
        (built / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}").write_text(Path("src/barnabas/tiny.py").read_text())
"""


class Checkout:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.write("setup.py", SETUP)
        self.write("src/compiled.toml", 'group = ["barnabas.tiny"]')
        self.write("src/barnabas/tiny.py", "NUMBER = 1\n")
        self.write("scripts/compile", (ROOT / "scripts" / "compile").read_text())
        self.write(".venv/made", "")

    def write(self, name: str, text: str) -> None:
        (self.directory / name).parent.mkdir(parents=True, exist_ok=True)
        (self.directory / name).write_text(text)

    def compile(self, *options: str, code: int = 0, settings: Mapping[str, str] | None = None) -> str:
        done = subprocess.run(
            [sys.executable, "scripts/compile", *options],
            cwd=self.directory,
            env={**os.environ, **(settings or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert done.returncode == code, done.stdout
        return done.stdout

    @property
    def builds(self) -> int:
        builds = self.directory / "builds"
        return len(builds.read_text()) if builds.exists() else 0

    @property
    def in_place(self) -> dict[str, str]:
        """Contents of the libraries beside the sources, by name."""
        sources = self.directory / "src"
        return {str(path.relative_to(sources)).partition(".")[0]: path.read_text() for path in sources.rglob("*.so")}

    @property
    def is_staged(self) -> bool:
        return (self.directory / "build/compile/modules/fingerprint").exists()

    def hold(self) -> None:
        self.write("hold", "")

    def let_go(self) -> None:
        (self.directory / "hold").unlink()

    def wait_for(self, builds: int = 0, staged: bool = False) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while self.builds < builds or (staged and not self.is_staged):
            assert time.monotonic() < deadline, self.compile_log()
            time.sleep(0.01)

    def compile_log(self) -> str:
        return (self.directory / "build/compile/log").read_text()


BOTH = {"barnabas_group__mypyc": "NUMBER = 1\n", "barnabas/tiny": "NUMBER = 1\n"}


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "checkout")


def test_the_modules_are_compiled_once_and_put_in_place(checkout: Checkout) -> None:
    checkout.compile()
    stamp = (checkout.directory / ".venv/compiled").stat().st_mtime_ns
    checkout.compile()
    assert (checkout.in_place, checkout.builds) == (BOTH, 1)
    assert (checkout.directory / ".venv/compiled").stat().st_mtime_ns == stamp


def test_the_first_run_starts_without_them_and_the_second_has_them(checkout: Checkout) -> None:
    checkout.hold()
    assert IN_BACKGROUND in checkout.compile("--for-run")
    checkout.let_go()
    checkout.wait_for(staged=True)
    assert checkout.in_place == {}
    assert checkout.compile("--for-run") == ""
    assert checkout.in_place == BOTH


def test_a_run_beside_the_build_starts_no_second_one(checkout: Checkout) -> None:
    checkout.hold()
    checkout.compile("--for-run")
    checkout.wait_for(builds=1)
    assert IN_BACKGROUND in checkout.compile("--for-run")
    checkout.let_go()
    checkout.wait_for(staged=True)
    checkout.compile()
    assert (checkout.in_place, checkout.builds) == (BOTH, 1)


def test_an_install_waits_for_the_build_in_the_background_and_uses_it(checkout: Checkout) -> None:
    checkout.hold()
    checkout.compile("--for-run")
    checkout.wait_for(builds=1)
    with subprocess.Popen([sys.executable, "scripts/compile"], cwd=checkout.directory, stdout=subprocess.PIPE, text=True) as install:
        assert install.stdout is not None
        assert "Waiting" in install.stdout.readline()
        checkout.let_go()
        assert install.wait(DEADLINE_S) == 0
    assert (checkout.in_place, checkout.builds) == (BOTH, 1)


def test_a_source_that_changes_during_the_build_makes_its_result_useless(checkout: Checkout) -> None:
    checkout.hold()
    checkout.compile("--for-run")
    checkout.wait_for(builds=1)
    checkout.write("src/barnabas/tiny.py", "NUMBER = 2\n")
    checkout.let_go()
    checkout.wait_for(staged=True)
    checkout.compile()
    assert set(checkout.in_place.values()) == {"NUMBER = 2\n"}
    assert checkout.builds == 2


def test_after_a_change_a_run_takes_the_old_modules_away(checkout: Checkout) -> None:
    checkout.compile()
    checkout.write("src/barnabas/tiny.py", "NUMBER = 2\n")
    checkout.hold()
    checkout.compile("--for-run")
    assert checkout.in_place == {}
    checkout.let_go()
    checkout.compile()
    assert set(checkout.in_place.values()) == {"NUMBER = 2\n"}


def test_modules_that_were_removed_come_back_without_a_build(checkout: Checkout) -> None:
    checkout.compile()
    for library in (checkout.directory / "src").rglob("*.so"):
        library.unlink()
    (checkout.directory / ".venv/compiled").unlink()
    checkout.compile()
    assert (checkout.in_place, checkout.builds) == (BOTH, 1)


def test_a_build_that_was_ended_leaves_plain_python_and_the_next_begins_anew(checkout: Checkout) -> None:
    checkout.hold()
    checkout.compile("--for-run")
    checkout.wait_for(builds=1)
    (checkout.directory / "build/compile/tree/half-written").touch()
    checkout.compile("--stop")
    assert (checkout.in_place, checkout.is_staged) == ({}, False)
    checkout.let_go()
    checkout.compile()
    assert checkout.in_place == BOTH
    assert not (checkout.directory / "build/compile/tree/half-written").exists()


def test_a_mistake_in_the_sources_fails_an_install_and_leaves_plain_python(checkout: Checkout) -> None:
    checkout.compile()
    checkout.write("broken", "")
    checkout.write("src/barnabas/tiny.py", "NUMBER = 2\n")
    assert "error: broken" in checkout.compile("--for-run") + checkout.compile(code=1)
    assert checkout.in_place == {}


def test_without_a_compiler_an_install_is_plain_python_and_does_not_try_again(checkout: Checkout) -> None:
    checkout.write("no-compiler", "")
    for options in ((), (), ("--for-run",)):
        assert "the modules could not be compiled, see build/compile/log" in checkout.compile(*options, settings={"CC": "false"})
    assert (checkout.in_place, checkout.builds) == ({}, 1)


def test_a_compiler_that_was_killed_fails_an_install_and_is_tried_again(checkout: Checkout) -> None:
    checkout.write("no-compiler", "")
    assert "The C compiler failed, see build/compile/log" in checkout.compile(code=1)
    assert checkout.in_place == {}
    (checkout.directory / "no-compiler").unlink()
    checkout.compile()
    assert checkout.in_place == BOTH


def test_a_build_that_fails_on_what_an_earlier_one_has_cached_begins_anew(checkout: Checkout) -> None:
    checkout.compile()
    checkout.write("stale", "")
    checkout.write("src/barnabas/tiny.py", "NUMBER = 2\n")
    checkout.compile()
    assert (checkout.in_place["barnabas/tiny"], checkout.builds) == ("NUMBER = 2\n", 3)


def test_a_compiler_that_was_installed_since_is_tried(checkout: Checkout) -> None:
    checkout.write("no-compiler", "")
    checkout.compile(settings={"CC": "false"})
    (checkout.directory / "no-compiler").unlink()
    checkout.compile(settings={"CC": shutil.which("echo") or "echo"})
    assert checkout.in_place == BOTH


def test_a_module_that_is_compiled_no_longer_is_not_put_in_place(checkout: Checkout) -> None:
    checkout.write("src/barnabas/small.py", "")
    checkout.write("src/compiled.toml", 'group = ["barnabas.small", "barnabas.tiny"]')
    checkout.write("setup.py", SETUP.replace('"barnabas/tiny")', '"barnabas/tiny", "barnabas/small")'))
    checkout.compile()
    assert set(checkout.in_place) == {"barnabas_group__mypyc", "barnabas/tiny", "barnabas/small"}
    checkout.write("src/compiled.toml", 'group = ["barnabas.tiny"]')
    checkout.compile()
    assert set(checkout.in_place) == set(BOTH)
