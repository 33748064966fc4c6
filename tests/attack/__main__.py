"""Runs every attack on a broker of its own, beside a well-behaved client: `python -m tests.attack [NAME …] [--aim-ms 100]`.

Prints a line for each: how long the attack took, the round trip of the client (p50, p99, slowest; produce and consume of five records), and
the broker's memory. Ends with 1 if the p99 of any is above the aim, or the client was harmed. `--json FILE` keeps the figures, and
`--before FILE` shows those of an earlier run beside them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.attack.table import ATTACKS, Attack
from tests.fuzz import target, witness

MEASURED_S_MIN = 3.0  # so long the client is measured, however short the attack is
AIM_MS = 100.0


@dataclass(frozen=True)
class Outcome:
    seconds: float
    p50_ms: float
    p99_ms: float
    slowest_ms: float
    memory_mb: float
    harm: str = ""


def main() -> int:
    given = _arguments()
    attacks = [attack for attack in ATTACKS if not given.names or attack.name in given.names]
    before = json.loads(given.before.read_text()) if given.before is not None else {}
    outcomes: dict[str, Outcome] = {}
    print(_heading(bool(before)), flush=True)
    for attack in attacks:
        outcomes[attack.name] = outcome = _run(attack)
        print(_line(attack, outcome, before.get(attack.name)), flush=True)
    if given.json is not None:
        given.json.write_text(json.dumps({name: asdict(outcome) for name, outcome in outcomes.items()}, indent=1))
    missed = [name for name, outcome in outcomes.items() if outcome.harm or outcome.p99_ms > given.aim_ms]
    for name in missed:
        outcome = outcomes[name]
        print(f"MISSED: {name}: {outcome.harm or f'p99 of {outcome.p99_ms:.0f} ms, the aim is {given.aim_ms:.0f} ms'}")
    return 1 if missed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.attack", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(each.name for each in ATTACKS))
    parser.add_argument("--aim-ms", type=float, default=AIM_MS)
    parser.add_argument("--json", type=Path, default=None, metavar="FILE")
    parser.add_argument("--before", type=Path, default=None, metavar="FILE")
    given = parser.parse_args()
    unknown = set(given.names) - {attack.name for attack in ATTACKS}
    if unknown:
        parser.error(f"no such attack: {', '.join(sorted(unknown))}")
    return given


def _run(attack: Attack) -> Outcome:
    with tempfile.TemporaryDirectory() as directory, target.running(Path(directory), attack.overrides) as broker:
        try:
            seconds, testimony = asyncio.run(_attack(attack, broker))
        except (AssertionError, TimeoutError) as error:
            return Outcome(0, 0, 0, 0, broker.peak_memory_mb(), f"{type(error).__name__}: {error}")
        for line in broker.log.read_text().splitlines():
            if "The event loop was held" in line:
                print(f"  {line}", flush=True)
        harm = "".join(broker.complaints()[:3])
        return Outcome(seconds, testimony.p50_ms, testimony.p99_ms, testimony.slowest_ms, broker.peak_memory_mb(), harm)


async def _attack(attack: Attack, broker: target.Target) -> tuple[float, witness.Testimony]:
    steps = attack.run(f"{target.HOST}:{broker.port}")
    await anext(steps)
    with witness.watching(broker.port) as testimony:
        started = time.monotonic()
        async for _ in steps:
            raise RuntimeError(f"The attack {attack.name} yields more than once")
        seconds = time.monotonic() - started
        await asyncio.sleep(max(0.0, MEASURED_S_MIN - seconds))
    return seconds, testimony[0]


def _heading(with_before: bool) -> str:
    columns = f"{'attack':34} {'seconds':>8} {'p50 ms':>8} {'p99 ms':>8} {'max ms':>8} {'peak MB':>8}"
    return columns + (f"   {'p99 before':>10} {'max before':>10}" if with_before else "")


def _line(attack: Attack, outcome: Outcome, before: dict[str, float] | None) -> str:
    line = (
        f"{attack.name:34} {outcome.seconds:8.2f} {outcome.p50_ms:8.1f} {outcome.p99_ms:8.1f} {outcome.slowest_ms:8.1f} "
        f"{outcome.memory_mb:8.0f}"
    )
    return line if before is None else f"{line}   {before['p99_ms']:10.1f} {before['slowest_ms']:10.1f}"


if __name__ == "__main__":
    sys.exit(main())
