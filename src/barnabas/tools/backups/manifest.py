"""manifest.json: what a backup holds and where it came from. It is written last, so a directory without it is no backup."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from barnabas.tools.command_line.failures import ToolError

MANIFEST: Final = "manifest.json"
TREE_DUMP: Final = "tree.json"
STORE_DIR: Final = "store"
FORMAT: Final = 1


@dataclass(frozen=True)
class LogDirCopy:
    """A log directory: its path on the broker's machine, and the directory of its copy inside the backup."""

    path: str
    copy: str


@dataclass(frozen=True)
class BrokerCopy:
    broker_id: int
    log_dirs: list[LogDirCopy]
    partitions: int
    size: int


@dataclass
class Manifest:
    """`store` is the path of the embedded metadata store, `zookeeper` the address of the ensemble; one of them is set."""

    cluster_id: str
    taken_ms: int
    brokers: list[BrokerCopy] = field(default_factory=list)
    store: str | None = None
    zookeeper: str | None = None
    format: int = FORMAT

    def write(self, backup: str) -> None:
        path = f"{backup}/{MANIFEST}"
        with open(f"{path}.tmp", "w", encoding="utf-8") as file:
            json.dump(asdict(self), file, indent=2)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(f"{path}.tmp", path)


def read_manifest(backup: str) -> Manifest:
    """Raises ToolError if the directory is no complete backup."""
    try:
        with open(f"{backup}/{MANIFEST}", encoding="utf-8") as file:
            content: dict[str, Any] = json.load(file)
        if content["format"] != FORMAT:
            raise ToolError(
                f"{backup} is a backup of format {content['format']}, this program knows {FORMAT}: use the program that wrote it"
            )
        brokers = [
            BrokerCopy(broker["broker_id"], [LogDirCopy(**log_dir) for log_dir in broker["log_dirs"]], broker["partitions"], broker["size"])
            for broker in content.pop("brokers")
        ]
        return Manifest(**content, brokers=brokers)
    except FileNotFoundError:
        raise ToolError(f"{backup} is no backup: it has no {MANIFEST}. Name a directory that `barnabas backup` has completed") from None
    except (ValueError, KeyError, TypeError) as error:
        raise ToolError(f"{backup}/{MANIFEST} cannot be read ({error}): take another backup") from None
