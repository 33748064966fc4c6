"""`python -m tests.integration.kerberos.clients.record kafka|barnabas [FILE]`: plays the scenarios and writes what each client gets.

Without FILE, to the record of Apache Kafka's answers: `make secured-clients`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests import kafka
from tests.integration.kerberos.clients.play import apache_kafka, own_broker, played
from tests.integration.security.clients.play import Outcomes
from tests.kerberos import running

RECORD = Path(__file__).parents[3] / "data" / f"kerberos-clients-{kafka.VERSION}.json"
_BROKERS = {"kafka": apache_kafka, "barnabas": own_broker}

_TIMEOUT_S = 400


def recorded() -> Outcomes:
    outcomes: Outcomes = json.loads(RECORD.read_text())
    return outcomes


def outcomes_now(directory: Path) -> str:
    """What the clients get from this broker, as JSON. In a process of its own, whose environment names the key distribution center."""
    file = directory / "outcomes.json"
    command = [sys.executable, "-m", "tests.integration.kerberos.clients.record", "barnabas", str(file)]
    done = subprocess.run(command, cwd=Path(__file__).parents[4], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return file.read_text()


def main(broker: str, file: Path = RECORD) -> None:
    with tempfile.TemporaryDirectory() as name, running(Path(name)) as kdc:
        directory = Path(name)
        os.environ.update(kdc.environment)
        with _BROKERS[broker](directory, kdc) as peer:
            outcomes = played(peer, kdc, directory)
    file.write_text(json.dumps(outcomes, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    print(f"{file.name}: {sum(map(len, outcomes.values()))} outcomes")


if __name__ == "__main__":
    main(sys.argv[1], *map(Path, sys.argv[2:]))
