"""What each client gets from Apache Kafka 4.2.0, written down, and what it gets from a broker now."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests import kafka
from tests.integration.security.clients.play import Outcomes

RECORD = Path(__file__).parents[3] / "data" / f"secured-clients-{kafka.VERSION}.json"
_TIMEOUT_S = 500


def recorded() -> Outcomes:
    outcomes: Outcomes = json.loads(RECORD.read_text())
    return outcomes


def outcomes_now(broker: str, directory: Path) -> str:
    """As JSON. In a process of its own: kafka-python and aiokafka leave sockets open when they are refused."""
    file = directory / "outcomes.json"
    command = [sys.executable, "-m", __package__, broker, str(file)]
    done = subprocess.run(command, cwd=Path(__file__).parents[4], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return file.read_text()
