"""Runs each `async def` test on an event loop of its own, with a deadline."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

DEADLINE_SECONDS = 60


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**arguments), DEADLINE_SECONDS))
    return True
