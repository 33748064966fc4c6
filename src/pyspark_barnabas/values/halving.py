"""Reads a batch at once if it can, and finds the rows that prevent it, by the error message or by halving.

So a few odd rows in a batch of thousands are read one by one, and all others as columns. With many odd rows the search stops and the
rest is read one by one: no batch costs more than a few times that.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_barnabas.values.text.arrow_times import NotPlain
from pyspark_barnabas.values.value_decoder import Parsed

ONE_BY_ONE: Final = 32  # up to this many rows are read singly instead of halved again
ROWS_A_SPLIT: Final = 64  # one split is allowed for each this many rows of a batch
SPLITS_MIN: Final = 8
_IN_ROW: Final = re.compile(r"in row (\d+)")  # of Arrow's JSON reader

AtOnce = Callable[[pa.Array], pa.Array]  # raises NotPlain or an Arrow error if any row is odd
Singly = Callable[[pa.Array], Parsed]


def read_halving(values: pa.Array, at_once: AtOnce, singly: Singly) -> Parsed:
    """Reads the rows. If the error names the odd row, that row is read singly; otherwise the batch is halved."""
    if not len(values):
        return singly(values)
    parts: list[Parsed] = []
    pending = [values]
    splits_left = max(SPLITS_MIN, len(values) // ROWS_A_SPLIT)
    while pending:
        part = pending.pop()
        if not len(part):
            continue
        try:
            parts.append(Parsed(at_once(part), {}))
            continue
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, NotPlain) as fault:
            row = _row(fault, len(part))
        if len(part) <= ONE_BY_ONE or splits_left == 0:
            parts.append(singly(part))
            continue
        splits_left -= 1
        if row is None:
            middle = len(part) // 2
            pending += [part.slice(middle), part.slice(0, middle)]
        else:
            pending += [part.slice(row + 1), part.slice(row, 1), part.slice(0, row)]
    return _joined(parts)


def _row(fault: Exception, count: int) -> int | None:
    """The row that an error names, if it is one of these. It is only a hint: every row is read in any case."""
    if isinstance(fault, NotPlain):
        row = fault.row
    else:
        match = _IN_ROW.search(str(fault))
        row = None if match is None else int(match[1])
    return row if row is not None and 0 <= row < count else None


def _joined(parts: list[Parsed]) -> Parsed:
    if len(parts) == 1:
        return parts[0]
    faults: dict[int, str] = {}
    start = 0
    for part in parts:
        faults |= {start + row: reason for row, reason in part.faults.items()}
        start += len(part.column)
    return Parsed(pa.concat_arrays([part.column for part in parts]), faults)


def read_apart(values: pa.Array, plain: pa.Array, at_once: AtOnce, singly: Singly) -> Parsed:
    """Reads the rows that look plain at once, and the others singly."""
    count = pc.sum(plain).as_py() or 0
    if count == len(values):
        return read_halving(values, at_once, singly)
    if count == 0:
        return singly(values)
    flags = plain.to_numpy(zero_copy_only=False)
    rows, other_rows = np.flatnonzero(flags), np.flatnonzero(~flags)
    parsed = read_halving(values.take(pa.array(rows)), at_once, singly)
    others = singly(values.take(pa.array(other_rows)))
    order = np.empty(len(values), dtype=np.int64)
    order[rows] = np.arange(len(rows))
    order[other_rows] = np.arange(len(rows), len(values))
    faults = {int(rows[row]): reason for row, reason in parsed.faults.items()}
    faults |= {int(other_rows[row]): reason for row, reason in others.faults.items()}
    return Parsed(pa.concat_arrays([parsed.column, others.column]).take(pa.array(order)), faults)
