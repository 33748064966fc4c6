"""Whatever is written, rolled, committed, aborted and cleaned: a reader finds the last value of each key, and a crash changes nothing."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from barnabas.records.reader import records_of
from barnabas.simulation.disk import SimulatedCrash, SimulatedFiles
from barnabas.storage.compaction.manager import CleanerConfig, CleanerManager
from barnabas.storage.directory.log_dir import LogDir
from barnabas.storage.log.fetch import FetchIsolation
from barnabas.storage.log.log import Log
from tests.unit.storage.cleaning import Keyed, Writer, clean, cleaned_files, committed, compact_config, keyed, keyed_batch, roll
from tests.unit.storage.logs import LOG_DIR, NOW, PARTITION, append, make_log

RETENTION_MS = 1000
PRODUCERS = 2

pairs = st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from(["1", "2", "33", None])), min_size=1, max_size=4)
operations = st.one_of(
    st.tuples(st.just("put"), pairs, st.sampled_from([0, 0, 2, 4])),
    st.tuples(st.just("write"), st.integers(0, PRODUCERS - 1), pairs),
    st.tuples(st.just("end"), st.integers(0, PRODUCERS - 1), st.booleans()),
    st.tuples(st.just("roll")),
    st.tuples(st.just("clean"), st.sampled_from([0, 1, RETENTION_MS])),
)


class Machine:
    """A compacted log beside a list of everything ever written to it."""

    def __init__(self, files: SimulatedFiles, cleaner: CleanerConfig) -> None:
        self.now_ms = NOW
        self.config = compact_config(delete_retention_ms=RETENTION_MS, min_cleanable_dirty_ratio=0.0, index_interval_bytes=100)
        self.log = make_log(files, self.config)
        self.manager = CleanerManager(cleaner, {LOG_DIR: LogDir(files, LOG_DIR)}, {PARTITION: self.log})
        self.writers = [Writer(self.log, 100 + number) for number in range(PRODUCERS)]
        self.open: list[list[Keyed]] = [[] for _ in range(PRODUCERS)]
        self.written: list[Keyed] = []  # and committed

    def do(self, operation: tuple[Any, ...]) -> None:
        name, *arguments = operation
        getattr(self, name)(*arguments)

    def put(self, added: list[tuple[str, str | None]], codec: int) -> None:
        self.written += self._numbered(added)
        append(self.log, keyed_batch(added, codec=codec))

    def write(self, producer: int, added: list[tuple[str, str | None]]) -> None:
        self.open[producer] += self._numbered(added)
        self.writers[producer].put_all(added)

    def end(self, producer: int, commit: bool) -> None:
        if commit:
            self.written += self.open[producer]
        self.open[producer] = []
        self.writers[producer]._end(commit)

    def roll(self) -> None:
        if self.log.active_segment.size:
            roll(self.log)

    def clean(self, later_ms: int) -> None:
        self.now_ms += later_ms
        self.log.update_high_watermark(self.log.log_end_offset)
        while self.manager.run_once(self.now_ms):
            pass

    def finish(self) -> None:
        for producer in range(PRODUCERS):
            self.end(producer, False)
        self.roll()
        self.clean(0)

    def _numbered(self, added: list[tuple[str, str | None]]) -> list[Keyed]:
        start = self.log.log_end_offset
        return [(start + n, key.encode(), None if value is None else value.encode()) for n, (key, value) in enumerate(added)]

    @property
    def expected(self) -> dict[bytes | None, bytes]:
        state: dict[bytes | None, bytes] = {}
        for _, key, value in sorted(self.written, key=lambda record: record[0]):
            state.pop(key, None)
            if value is not None:
                state[key] = value
        return state


# The map is full in the midst of a committed transaction of a producer that has aborted one before.
ABORTED_THEN_COMMITTED = [
    ("put", [("a", "1")], 0),
    ("write", 0, [("a", "1")]),
    ("end", 0, False),
    ("write", 0, [("b", "1"), ("a", "1")]),
    ("end", 0, True),
]


@settings(max_examples=80)
@example(ABORTED_THEN_COMMITTED, 2)
@given(st.lists(operations, max_size=25), st.sampled_from([2, 4, 1000]))
def test_compaction_equals_the_last_value_of_each_key(done: list[tuple[Any, ...]], keys_max: int) -> None:
    machine = Machine(SimulatedFiles(lambda: NOW), CleanerConfig(dedupe_buffer_size=24 * keys_max, io_buffer_load_factor=1.0))
    for operation in done:
        machine.do(operation)
    machine.finish()
    log = machine.log
    assert machine.manager.uncleanable_partitions(LOG_DIR) == frozenset()
    assert committed(log) == machine.expected

    left = keyed(log)
    assert set(left) <= set(machine.written), "nothing of an aborted transaction, and nothing that was not written"
    assert len({key for _, key, _ in left}) == len(left), "no key is there twice"
    _assert_every_offset_leads_to_the_next_record(log, [offset for offset, *_ in left])

    clean(log, now_ms=machine.now_ms)
    assert keyed(log) == left, "a second run finds nothing to do"


def _assert_every_offset_leads_to_the_next_record(log: Log, offsets: list[int]) -> None:
    data = b"".join(segment.file.pread(segment.size, 0) for segment in log.segments)
    everything = [record.offset for record in records_of(data)]
    assert set(offsets) <= set(everything)
    for offset in range(log.log_start_offset, log.log_end_offset):
        fetched = log.read(offset, 100_000, FetchIsolation.LOG_END)
        found = b"" if fetched.records is None else fetched.records.read()
        following = [at for at in everything if at >= offset]
        read = [record.offset for record in records_of(found) if record.offset >= offset]
        assert read[:1] == following[:1] or (not read and not _in_same_segment(log, offset, following))


def _in_same_segment(log: Log, offset: int, following: list[int]) -> bool:
    """A fetch ends with its segment: headers without records may be all that is left of the rest of one."""
    segment, other = log.segments.floor(offset), log.segments.floor(following[0]) if following else None
    return segment is other


def _random_log(rng: random.Random, files: SimulatedFiles) -> Machine:
    machine = Machine(files, CleanerConfig(io_buffer_size=1))
    for _ in range(rng.randint(5, 40)):
        added = [(rng.choice("abcdef"), rng.choice(["1", "2", None])) for _ in range(rng.randint(1, 3))]
        producer = rng.randrange(PRODUCERS)
        if rng.random() < 0.5:
            machine.put(added, 0)
        else:
            machine.write(producer, added)
        if rng.random() < 0.3:
            machine.end(producer, rng.random() < 0.5)
        if rng.random() < 0.2:
            machine.roll()
        if rng.random() < 0.1:
            machine.clean(RETENTION_MS)
    for producer in range(PRODUCERS):
        machine.end(producer, True)
    machine.roll()
    machine.log.flush(machine.now_ms)
    machine.log.update_high_watermark(machine.log.log_end_offset)
    return machine


@pytest.mark.parametrize("machine_crash", [True, False], ids=["machine", "process"])
def test_a_crash_at_any_moment_of_a_cleaning_changes_nothing_for_a_reader(machine_crash: bool) -> None:
    for seed in range(60):
        rng = random.Random(seed)
        files = SimulatedFiles(lambda: NOW)
        machine = _random_log(rng, files)
        end = machine.log.log_end_offset
        files.halt_at(files.events + rng.randint(1, 120))
        with suppress(SimulatedCrash):
            machine.clean(RETENTION_MS)
        survivor = files.crash(rng) if machine_crash else files.process_crash()
        files.halt_at(2**62)  # the dead process may tidy up without being heard
        log = make_log(survivor, machine.config, recovery_point=end)
        log.update_high_watermark(log.log_end_offset)
        assert log.log_end_offset == end, f"seed {seed}"
        assert committed(log) == machine.expected, f"seed {seed}"
        assert cleaned_files(log) == []
        clean(log, now_ms=machine.now_ms)
        assert committed(log) == machine.expected, f"seed {seed}"
