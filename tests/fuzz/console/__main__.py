"""The fuzzer of the console: `python -m tests.fuzz.console [--requests N] [--seed S] [--from NUMBER]`.

Prints what was sent and found; ends with 1 if anything was found. Pages show values that later requests send, so a finding may need the
requests before it.
"""

from __future__ import annotations

import argparse
import sys

from tests.fuzz.console import campaign


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.fuzz.console", description=__doc__)
    parser.add_argument("--requests", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="NUMBER")
    given = parser.parse_args()
    report = campaign.run(given.seed, range(given.first, given.first + given.requests), lambda line: print(line, flush=True))
    print(
        f"{report.requests:,} requests to {len(report.routes)} routes, statuses {dict(sorted(report.statuses.items()))}, "
        f"{len(report.findings)} findings"
    )
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
