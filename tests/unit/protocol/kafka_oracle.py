"""Asks Apache Kafka's own Java classes what they make of our messages, and keeps the answers that no other oracle can give.

    python -m tests.unit.protocol.kafka_oracle        (Java 17; the jars are those of `make kafka` and `make protocol`)

sends random messages in every version to the classes of 4.2.0, or of 3.9.1 where 4.2.0 has no such version, stops at the first that is not
read and written alike, and writes `golden.json` with one answer for each message and version that kio does not know.
"""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from barnabas.protocol.generator.schema import OLD_RELEASE, RELEASE, SCHEMAS, Versions
from barnabas.protocol.message import serialize
from tests.jvm import SHORT_LIVED, cache_dir
from tests.kafka import prepare
from tests.unit.protocol.instances import ALL, COORDINATOR_RECORDS, VERSIONS, random_message

HERE = Path(__file__).parent
GOLDEN = HERE / "golden.json"
SEEDS = range(10)


def main() -> None:
    from tests.unit.protocol.test_against_kio import COMPARED

    golden: dict[tuple[str, int], dict[str, Any]] = {}
    for release in (OLD_RELEASE, RELEASE):
        messages = [(name, version) for name, version in VERSIONS if release_of(name, version) == release]
        questions = [(name, version, random_bytes(name, version, seed)) for name, version in messages for seed in SEEDS]
        for (name, version, raw), answer in zip(questions, ask(release, questions), strict=True):
            if answer.get("bytes") != raw or answer["left"] != 0:
                raise SystemExit(f"{name} v{version}: {raw} was answered with {answer}")
            if (name, version) not in COMPARED:
                golden.setdefault((name, version), {"name": name, "version": version, "bytes": raw, "values": answer["values"]})
        print(f"{release}: {len(questions)} messages in {len(messages)} versions are read and written alike")
    GOLDEN.write_text("[\n" + ",\n".join(json.dumps(one) for one in golden.values()) + "\n]\n")


def random_bytes(name: str, version: int, seed: int) -> str:
    return serialize(random_message(name, version, Random(seed)), version).hex()


def release_of(name: str, version: int) -> str:
    if name in COORDINATOR_RECORDS:
        return RELEASE
    return RELEASE if version in Versions.parse(schemas()[name]["validVersions"]) else OLD_RELEASE


@cache
def schemas() -> dict[str, Any]:
    read: dict[str, Any] = json.loads((SCHEMAS / f"{RELEASE}.json").read_text())
    return read


def ask(release: str, questions: list[tuple[str, int, str]]) -> list[dict[str, Any]]:
    """One answer per question, from one JVM."""
    jars = f"{prepare()}/*"
    if release == OLD_RELEASE:  # its classes come first on the path; what they need is the same in both
        jars = f"{cache_dir() / f'{OLD_RELEASE}-schemas'}/*:{jars}"
    lines = "".join(f"{java_class(name)} {version} {raw}\n" for name, version, raw in questions)
    java = ["java", *SHORT_LIVED, "-cp", jars, str(HERE / "Oracle.java")]
    done = subprocess.run(java, input=lines, capture_output=True, text=True, check=True, timeout=600)
    return [json.loads(line) for line in done.stdout.splitlines()]


def java_class(name: str) -> str:
    if name not in COORDINATOR_RECORDS:
        suffix = "" if ALL[name].kind == "data" else "Data"
        return f"org.apache.kafka.common.message.{name}{suffix}"
    if name.startswith("TransactionLog"):
        return f"org.apache.kafka.coordinator.transaction.generated.{name}"
    part = "share" if name.startswith(("ShareSnapshot", "ShareUpdate")) else "group"
    return f"org.apache.kafka.coordinator.{part}.generated.{name}"


if __name__ == "__main__":
    main()
