"""Runs `async def` tests, each on asyncio's loop and on uvloop's, with a deadline; and makes a certificate for those of TLS."""

from __future__ import annotations

import asyncio
import inspect
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from barnabas.network.event_loop import new_event_loop

DEADLINE_SECONDS = 300  # against hanging; a storm under tracemalloc takes a minute where other work keeps the cores busy


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if inspect.iscoroutinefunction(metafunc.function):
        metafunc.fixturenames.append("loop_factory")
        metafunc.parametrize("loop_factory", [asyncio.new_event_loop, new_event_loop], ids=["asyncio", "uvloop"])


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames if name != "loop_factory"}
    with asyncio.Runner(loop_factory=pyfuncitem.callspec.params["loop_factory"]) as runner:
        runner.run(asyncio.wait_for(pyfuncitem.obj(**arguments), DEADLINE_SECONDS))
    return True


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of localhost; its key stands beside it."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command to make a certificate")
    path = tmp_path_factory.mktemp("tls") / "localhost.pem"
    made = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1"
    subprocess.run(["openssl", *made.split(), "-keyout", f"{path}.key", "-out", path], check=True, capture_output=True)
    return path
