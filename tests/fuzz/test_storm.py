"""Hostile frames, from a fuzzer that knows the schemas and from one that does not: the broker stays alive, correct and as small as it was.

`make fuzz` sends 200,000 and more; here are as many as a test run has time for. A finding names its seed and frame, and
`python -m tests.fuzz --seed S --only N` sends that one alone.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from random import Random

import pytest

from barnabas.protocol.messages.delete_topics_request import DeleteTopicsRequest
from barnabas.uuid import Uuid
from tests.fuzz import campaign, sasl, target
from tests.fuzz.frames import SERVED, make_frame
from tests.fuzz.values import STABLE

FRAMES = int(os.environ.get("BARNABAS_FUZZ_FRAMES", "4000"))
SEED = int(os.environ.get("BARNABAS_FUZZ_SEED", "1"))
PARTITIONS, CYCLES, CYCLE_GROWTH_MB_MAX = 1000, 5, 6
IDS = {name: Uuid(bytes([number + 1]) * 16) for number, name in enumerate(STABLE)}


def test_the_broker_outlives_a_storm_of_hostile_frames(tmp_path: Path) -> None:
    report = campaign.run(tmp_path, SEED, range(FRAMES), print)
    assert not report.findings, f"seed {SEED}:\n" + "\n".join(report.findings)
    assert report.frames == FRAMES
    assert report.witnessed > 0


def test_partitions_made_and_deleted_again_and_again_take_no_more_memory_than_the_first_time(tmp_path: Path) -> None:
    with target.running(tmp_path) as broker:
        after = []
        for _ in range(CYCLES):
            with broker.client(60) as client:
                client.create_topics(["doomed"], PARTITIONS)
                client.ask(DeleteTopicsRequest(topic_names=["doomed"], timeout_ms=60_000), 5)
            broker.await_files(target.FILES_AT_REST)
            after.append(broker.memory_mb())
    assert after[-1] < after[0] + CYCLE_GROWTH_MB_MAX, after


@pytest.mark.parametrize("mechanism", sasl.MECHANISMS)
def test_the_fuzzer_of_authentication_can_log_in_and_notices_who_is_let_in(mechanism: str, tmp_path: Path) -> None:
    with target.running(tmp_path) as broker:
        sasl.add_user(broker)
        with socket.create_connection((target.HOST, broker.sasl_port), sasl.ANSWER_S) as stream:
            peer = sasl.SaslPeer(stream, 1)
            peer.log_in(mechanism, Random(1))
            assert peer.gets_metadata()
        with socket.create_connection((target.HOST, broker.sasl_port), sasl.ANSWER_S) as stream, pytest.raises((EOFError, OSError)):
            sasl.SaslPeer(stream, 1).gets_metadata()


def test_a_seed_makes_the_same_frames_every_time() -> None:
    assert [make_frame(7, number, IDS).data for number in range(300)] == [make_frame(7, number, IDS).data for number in range(300)]
    assert make_frame(7, 5, IDS).data != make_frame(8, 5, IDS).data


def test_every_version_of_every_api_is_among_the_frames() -> None:
    seen = {(frame.api, frame.version) for frame in (make_frame(1, number, IDS) for number in range(6000))}
    assert seen == {(api.name, version) for api in SERVED for version in range(api.lowest_version, api.stable_version + 1)}
