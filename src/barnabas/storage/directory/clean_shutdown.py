""".kafka_cleanshutdown: the marker of a log directory whose logs were flushed and closed before the broker stopped.

If it exists, the next start skips recovery, so it is written last, read first and deleted before anything is appended. Since Kafka 4 it
also contains the epoch of the broker that wrote it; before that it was empty.
"""

from __future__ import annotations

import json
from typing import Final

from barnabas.errors import CorruptCheckpoint
from barnabas.storage.directory.checkpoints import read_text
from barnabas.storage.disk.files import AnyFiles

CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"
CLEAN_SHUTDOWN_VERSION: Final = 0
NO_BROKER_EPOCH: Final = -1
_BYTES_MAX: Final = 4096


class CleanShutdownFile:
    def __init__(self, files: AnyFiles, log_dir: str) -> None:
        self.files = files
        self.path = f"{log_dir}/{CLEAN_SHUTDOWN_FILE}"

    def exists(self) -> bool:
        return self.files.exists(self.path)

    def write(self, broker_epoch: int = NO_BROKER_EPOCH) -> None:
        content = json.dumps({"version": CLEAN_SHUTDOWN_VERSION, "brokerEpoch": broker_epoch}, separators=(",", ":"))
        self.files.write_atomically(self.path, content.encode())

    def read(self) -> int | None:
        """The epoch of the broker that stopped; None if the file is missing or does not contain it."""
        try:
            content = json.loads(read_text(self.files, self.path, _BYTES_MAX))
        except (FileNotFoundError, CorruptCheckpoint, ValueError, RecursionError):
            return None
        epoch = content.get("brokerEpoch") if isinstance(content, dict) else None
        return epoch if type(epoch) is int else None

    def delete(self) -> None:
        self.files.remove(self.path, missing_ok=True)
