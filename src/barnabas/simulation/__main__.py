"""Plays histories of a cluster, one for each seed, and says which went wrong: `python -m barnabas.simulation --seeds 0-999`.

A history that goes wrong is printed with its seed, which plays it again exactly.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Sequence

from barnabas.simulation.histories import play


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("barnabas.simulation", description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", default="0-99", help="one seed, or the first and the last: 0-99")
    parser.add_argument("--faults", type=int, default=8, help="in each history; default: %(default)s")
    parser.add_argument("--log", action="store_true", help="show what the brokers log")
    given = parser.parse_args(arguments)
    if given.log:
        logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
    else:
        logging.disable(logging.CRITICAL)
    first, _, last = given.seeds.partition("-")
    began, failed, steps = time.monotonic(), 0, 0
    seeds = range(int(first), int(last or first) + 1)
    for seed in seeds:
        outcome = play(seed, given.faults)
        steps += outcome.steps
        if outcome.wrong:
            failed += 1
            print(outcome, flush=True)
    print(f"{len(seeds)} histories, {steps} steps, {time.monotonic() - began:.0f} s: {failed} went wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
