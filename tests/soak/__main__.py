"""`python -m tests.soak --minutes 60` runs a soak and writes its plot."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests import zookeeper
from tests.soak.plot import write_plot
from tests.soak.soak import Soak

SAMPLES = 240
RESTARTS = 12


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--plot", type=Path, default=Path("docs/soak.png"))
    given = parser.parse_args()
    seconds = 60 * given.minutes
    with tempfile.TemporaryDirectory(prefix="barnabas-soak-") as directory:
        (Path(directory) / "zookeeper").mkdir()
        with zookeeper.running(Path(directory) / "zookeeper") as ensemble:
            soak = Soak(Path(directory), ensemble.address, lambda line: print(line, flush=True))
            soak.run(seconds, max(seconds / SAMPLES, 1.0), max(seconds / RESTARTS, 20.0))
    write_plot(given.plot, soak.samples, soak.restarts)
    verdicts = soak.verdicts(with_latencies=True)
    records = sum(sample.acknowledged for sample in soak.samples)
    print(f"{len(soak.samples)} samples, {len(soak.restarts)} restarts, {records} records; {given.plot}")
    print("\n".join(map(str, verdicts)))
    return 0 if all(verdict.is_flat for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
