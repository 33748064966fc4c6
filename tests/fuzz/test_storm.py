"""Hostile frames, from a fuzzer that knows the schemas and from one that does not: the broker stays alive, correct and as small as it was.

`make fuzz` sends 200,000 and more; here are as many as a test run has time for. A finding names its seed and frame, and
`python -m tests.fuzz --seed S --only N` sends that one alone.
"""

from __future__ import annotations

import os
from pathlib import Path

from barnabas.uuid import Uuid
from tests.fuzz import campaign
from tests.fuzz.frames import SERVED, make_frame
from tests.fuzz.values import STABLE

FRAMES = int(os.environ.get("BARNABAS_FUZZ_FRAMES", "4000"))
SEED = int(os.environ.get("BARNABAS_FUZZ_SEED", "1"))
IDS = {name: Uuid(bytes([number + 1]) * 16) for number, name in enumerate(STABLE)}


def test_the_broker_outlives_a_storm_of_hostile_frames(tmp_path: Path) -> None:
    report = campaign.run(tmp_path, SEED, range(FRAMES), print)
    assert not report.findings, f"seed {SEED}:\n" + "\n".join(report.findings)
    assert report.frames == FRAMES
    assert report.witnessed > 0


def test_a_seed_makes_the_same_frames_every_time() -> None:
    assert [make_frame(7, number, IDS).data for number in range(300)] == [make_frame(7, number, IDS).data for number in range(300)]
    assert make_frame(7, 5, IDS).data != make_frame(8, 5, IDS).data


def test_every_version_of_every_api_is_among_the_frames() -> None:
    seen = {(frame.api, frame.version) for frame in (make_frame(1, number, IDS) for number in range(6000))}
    assert seen == {(api.name, version) for api in SERVED for version in range(api.lowest_version, api.highest_version + 1)}
