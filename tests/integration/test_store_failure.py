"""A metadata store whose disk refuses writes: said in the log and by `barnabas status` while it is so."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

from barnabas.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from benchmarks.wire import Client
from tests.integration.test_server_process import DEADLINE_S, Running, running, up, wait_for


def status(broker: Running) -> tuple[int, str]:
    command = [sys.executable, "-m", "barnabas", "status", "--bootstrap-server", f"{broker.host}:{broker.port}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    return done.returncode, done.stdout


def test_a_store_on_a_disk_that_refuses_writes_is_reported(tmp_path: Path) -> None:
    with running(tmp_path, *up(tmp_path)) as broker, Client(broker.host, broker.port) as client:
        client.create_topics(["before"])
        assert status(broker)[0] == 0
        used = (tmp_path / "data" / "barnabas.db-wal").stat().st_size
        limits = resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE, (used, resource.RLIM_INFINITY))
        for _ in range(3):
            answer = client.ask(CreateTopicsRequest([CreatableTopic("refused", 1, 1)], 1_000), 5)
            assert answer.topics[0].error_code != 0
        wait_for(broker.log, "could not keep a change")
        code, screen = status(broker)
        assert code == 2 and "CRITICAL" in screen and "the metadata store" in screen, screen
        assert broker.log.read_text().count("topics, configs and leaders cannot be changed") == 1
        resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE, limits)
        client.create_topics(["after"])
        wait_for(broker.log, "keeps changes again")
        assert "the metadata store" not in status(broker)[1]
        assert broker.stop() == 0
