"""The storm: `python -m tests.fuzz [--frames N] [--seed S]`, and `--only N` to send one frame of a seed alone, to see what it does.

Prints what was sent and how the broker took it; ends with 1 if anything was found.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.fuzz import campaign


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.fuzz", description=__doc__)
    parser.add_argument("--frames", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, default=None, metavar="NUMBER")
    given = parser.parse_args()
    numbers = range(given.frames) if given.only is None else range(given.only, given.only + 1)
    with tempfile.TemporaryDirectory() as directory:
        report = campaign.run(Path(directory), given.seed, numbers, lambda line: print(line, flush=True))
    for finding in report.findings:
        print(f"FOUND (seed {given.seed}): {finding}")
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
