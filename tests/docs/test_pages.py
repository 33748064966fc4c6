"""Every command and every snippet of README.md and docs/ is run as it stands, as a newcomer would who types the page from its top."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.network import own_network
from tests.docs.run_pages import PYTHON, SHELL, Outcome, needs_spark
from tests.documentation import PAGES, ROOT, blocks
from tests.jvm import spark_environment

TIMEOUT_S = 900
RUN_PAGES = [page for page in PAGES if any(block.is_run and block.language in (SHELL, PYTHON) for block in blocks(page))]
SPARK_PAGES = [page for page in RUN_PAGES if needs_spark(page)]


@pytest.mark.timeout(TIMEOUT_S + 20)
@pytest.mark.parametrize("page", [page for page in RUN_PAGES if page not in SPARK_PAGES])
def test_what_a_page_shows_works(page: str, tmp_path: Path) -> None:
    _check(read_pages(tmp_path, page))


@pytest.mark.timeout(TIMEOUT_S + 20)
def test_what_the_pages_about_spark_show_works_in_one_session(tmp_path: Path) -> None:
    _check(read_pages(tmp_path, *SPARK_PAGES))


def read_pages(directory: Path, *pages: str) -> list[Outcome]:
    """The outcome of each command and each snippet, in a network where the ports of the pages are free."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    with own_network() as prefix:
        done = subprocess.run(
            [*prefix, sys.executable, "-m", "tests.docs.run_pages", str(directory), *pages],
            env={**os.environ, **(spark_environment() if any(map(needs_spark, pages)) else {}), "PYTHONPATH": path},
            capture_output=True,
            encoding="utf-8",
            timeout=TIMEOUT_S,
            check=False,
        )
    assert done.returncode == 0, f"{', '.join(pages)} could not be run:\n{done.stderr}"
    return [Outcome(**outcome) for outcome in json.loads(done.stdout.splitlines()[-1])]


def _check(outcomes: list[Outcome]) -> None:
    failed = [str(outcome) for outcome in outcomes if outcome.failure is not None]
    if failed:
        pytest.fail("What the page shows does not work:\n\n" + "\n\n".join(failed), pytrace=False)
    missing = [f"{outcome.place} needs {outcome.missing}" for outcome in outcomes if outcome.missing is not None]
    if missing:
        pytest.skip(f"all but this was run: {', '.join(missing)}, which is not installed")
