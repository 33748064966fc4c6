"""Plays histories of a simulated cluster, one for each seed, and prints those that went wrong:
`python -m barnabas.simulation --seeds 0-999 --jobs 2`.

A failed history is printed with its seed, which replays it exactly.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from barnabas.simulation.histories import HistoryOutcome, play


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("barnabas.simulation", description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", default="0-99", help="one seed, or the first and the last: 0-99")
    parser.add_argument("--faults", type=int, default=4, help="in each history; default: %(default)s")
    parser.add_argument("--jobs", type=int, default=1, help="so many processes share the seeds; default: %(default)s")
    parser.add_argument("--secured", action="store_true", help="with SASL and an authorizer")
    parser.add_argument("--two-disks", action="store_true", help="with two log directories for each broker, which fail one at a time")
    parser.add_argument("--throttled", action="store_true", help="an operator throttles replication and limits clients")
    parser.add_argument("--log", action="store_true", help="show what the brokers log")
    options = parser.parse_args(arguments)
    first, _, last = options.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    began, failed, steps = time.monotonic(), 0, 0
    for outcome in _outcomes(seeds, options.faults, options.jobs, options.log, options.secured, options.two_disks, options.throttled):
        steps += outcome.steps
        if outcome.wrong:
            failed += 1
            print(outcome, flush=True)
    print(f"{len(seeds)} histories, {steps} steps, {time.monotonic() - began:.0f} s: {failed} went wrong")
    return 1 if failed else 0


def _outcomes(
    seeds: range, faults: int, jobs: int, shows_log: bool, is_secured: bool, has_two_disks: bool, is_throttled: bool
) -> Iterator[HistoryOutcome]:
    """The outcomes in the order of the seeds."""
    if jobs <= 1:
        _set_up_log(shows_log)
        yield from (play(seed, faults, is_secured=is_secured, has_two_disks=has_two_disks, is_throttled=is_throttled) for seed in seeds)
        return
    with ProcessPoolExecutor(jobs, initializer=_set_up_log, initargs=(shows_log,)) as processes:
        yield from processes.map(
            partial(play, faults=faults, is_secured=is_secured, has_two_disks=has_two_disks, is_throttled=is_throttled), seeds
        )


def _set_up_log(is_shown: bool) -> None:
    if is_shown:
        logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
    else:
        logging.disable(logging.CRITICAL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
