"""`python -m tests.integration.security.clients kafka|barnabas [FILE]`: plays the scenarios and writes what each client gets.

Without FILE, to the record of Apache Kafka's answers: `make secured-clients`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tests.integration.security.clients import peers
from tests.integration.security.clients.play import played
from tests.integration.security.clients.record import RECORD

BROKERS = {"kafka": peers.apache_kafka, "barnabas": peers.own_broker}

if __name__ == "__main__":
    name, file = sys.argv[1], Path(sys.argv[2]) if len(sys.argv) > 2 else RECORD
    with tempfile.TemporaryDirectory() as directory, BROKERS[name](Path(directory)) as peer:
        outcomes = played(peer, Path(directory))
    file.write_text(json.dumps(outcomes, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    print(f"{file.name}: {sum(map(len, outcomes.values()))} outcomes")
