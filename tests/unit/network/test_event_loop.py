from __future__ import annotations

import asyncio
import sys

import pytest

from barnabas.endpoint import EndPoint, SecurityProtocol
from barnabas.network.event_loop import new_event_loop, run


def test_a_broker_runs_on_uvloop() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def loop() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    assert isinstance(run(loop()), uvloop.Loop)


def test_without_uvloop_it_runs_on_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    loop = new_event_loop()
    loop.close()
    assert type(loop).__module__.startswith("asyncio")


def test_an_end_point_is_written_as_in_the_settings() -> None:
    assert str(EndPoint("INTERNAL", "10.0.0.1", 9093)) == "INTERNAL://10.0.0.1:9093"
    assert str(EndPoint("INTERNAL", "", 9093)) == "INTERNAL://:9093"
    assert str(EndPoint("INTERNAL", "::1", 9093)) == "INTERNAL://[::1]:9093"


def test_sasl_ssl_is_tls() -> None:
    assert SecurityProtocol.SASL_SSL.uses_tls
    assert not EndPoint("A").security_protocol.uses_tls
