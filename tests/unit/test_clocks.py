"""Intervals and deadlines are measured with monotonic time: a wall clock that is set stops no work and brings none forward.

The source is read. Wall time is called `now_ms`, monotonic time `monotonic_ms`. Wall time may be read only in the places listed here, each
with the reason, and neither may be given where the other is expected.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import barnabas

SOURCE = Path(barnabas.__file__).parent
PACKAGES = ("broker", "controller", "coordinator", "metadata", "network", "records", "storage")
WALL, MONOTONIC = "now_ms", "monotonic_ms"

# Nothing but broker/clock.py may call these.
CLOCKS = {"time.time", "time.time_ns", "time.monotonic", "time.monotonic_ns", "time.clock_gettime", "time.clock_gettime_ns"}
CLOCKS |= {f"datetime.{name}" for name in ("now", "utcnow", "today")} | {f"datetime.datetime.{name}" for name in ("now", "utcnow", "today")}
READS_CLOCKS = {
    "broker/clock.py Clock.now_ms": "the wall clock of the broker",
    "broker/clock.py Clock.monotonic_ms": "its monotonic clock",
    "broker/security/tls/listener_tls.py _warn_if_expired": "for a warning about a certificate; a simulation has no TLS",
    "network/server.py monotonic_ms": "for a server that is given no clock, in tests",
}

RECORDS = "goes into records, or is compared with timestamps of records"
STATES = "the state timestamp in the record of a group, from which its offsets expire"
VERSIONS = "the version of what was resolved is in records, and grows over restarts"
TOKENS = "delegation tokens have their expiry in the metadata store, and brokers share them"
NEEDS_WALL_TIME = {
    "broker/security/sasl/listener.py SaslListener._lifetime_ms": "compared with the expiry of a token or delegation token",
    "broker/security/sasl/oauthbearer/token_check.py TokenCheck.validate": "compared with the times of a token",
    "broker/security/sasl/oauthbearer/token_check.py UnsignedCheck.validate": "the same",
    "broker/security/sasl/scram.py ScramExchange._token": "compared with the expiry of a delegation token",
    "broker/security/tokens/delegation_tokens.py DelegationTokens.create": TOKENS,
    "broker/security/tokens/delegation_tokens.py DelegationTokens._change": TOKENS,
    "broker/security/tokens/delegation_tokens.py DelegationTokens.remove_expired": TOKENS,
    "broker/server/housekeeping.py Housekeeping._tick": "retention and the expiry of producers compare it with timestamps of records",
    "broker/server/housekeeping.py Housekeeping._clean": "compaction lags and the delete horizon compare it with timestamps of records",
    "broker/server/housekeeping.py Housekeeping._move": "producer state of the records that are copied",
    "broker/replication/replica_logs.py LocalReplicaLogs.append": RECORDS,
    "broker/replication/replica_logs.py LocalReplicaLogs.truncate_to": (
        "producers that have expired by their last records are not loaded again"
    ),
    "broker/replication/replica_logs.py LocalReplicaLogs.start_anew_at": "the same",
    "broker/replication/long_appends.py LongAppends._append_long": RECORDS,
    "broker/replication/replica_manager.py ReplicaManager.append_on": RECORDS,
    "broker/replication/replica_manager.py ReplicaManager.append_as_coordinator": RECORDS,
    "broker/replication/replica_manager.py ReplicaManager.legacy_offsets": (
        "ListOffsets v0 compares it with the modification times of segments"
    ),
    "broker/replication/replica_manager.py ReplicaManager._alter_log_dir": "the producer state of a log that is made",
    "broker/replication/replica_states.py _open_log": "the producer state of a log that is loaded",
    "broker/server/server.py BrokerServer._claim_log_dirs": "the date in meta.properties",
    "broker/server/server.py BrokerServer._start": "producers that have expired by their last records are not loaded",
    "broker/server/metrics_outputs.py MetricsOutputs._start_otlp": "points of OTLP have wall time",
    "broker/server/own_registration.py OwnRegistration.register": "the timestamp in the registration of the broker",
    "broker/environment.py Environment.open_tree": "the times of znodes",
    "broker/exposition/lag/group_lag.py _ages": RECORDS,
    "broker/transactions/transaction_markers.py MarkerAppender._batch": RECORDS,
    "broker/transactions/transaction_coordinator_service.py TransactionCoordinatorService.metrics": (
        "late transactions are told by the timestamps of their records"
    ),
    "controller/controller.py Controller._elect": "the timestamp in /controller",
    "coordinator/group/classic/classic_groups.py ClassicGroups.join": STATES,
    "coordinator/group/classic/classic_groups.py ClassicGroups.prepare_rebalance": STATES,
    "coordinator/group/classic/classic_groups.py ClassicGroups._complete_join": STATES,
    "coordinator/group/classic/classic_groups.py ClassicGroups._stabilize.on_appended": STATES,
    "coordinator/group/classic/classic_groups.py ClassicGroups.on_unloaded": STATES,
    "coordinator/group/consumer/consumer_group_steps.py ConsumerGroupSteps.downgrade": STATES,
    "coordinator/group/offsets.py OffsetMetadataManager.replay": STATES,
    "coordinator/group/offsets.py OffsetMetadataManager.commit": RECORDS,
    "coordinator/group/offsets.py OffsetMetadataManager._commit_transactional": RECORDS,
    "coordinator/group/offsets.py OffsetMetadataManager.expire": "offsets expire by the commit timestamps in their records",
    "coordinator/group/regex_refresh.py RegexRefresh.__init__": VERSIONS,
    "coordinator/group/regex_refresh.py RegexRefresh.on_topics_created": VERSIONS,
    "coordinator/group/regex_refresh.py RegexRefresh.refresh": RECORDS,
    "coordinator/group/regex_refresh.py RegexRefresh._is_due": "compared with the time in the record of what was resolved",
    "coordinator/runtime.py CoordinatorRuntime._build": RECORDS,
    "coordinator/runtime.py CoordinatorRuntime.complete_transaction": RECORDS,
    "coordinator/transaction/coordinator.py TransactionCoordinator.list_transactions": "compared with the start of transactions in records",
    "coordinator/transaction/shard.py TransactionCoordinatorShard.init_producer_id": RECORDS,
    "coordinator/transaction/shard.py TransactionCoordinatorShard.add_partitions": RECORDS,
    "coordinator/transaction/shard.py TransactionCoordinatorShard.end": RECORDS,
    "coordinator/transaction/shard.py TransactionCoordinatorShard._complete": RECORDS,
    "coordinator/transaction/shard.py TransactionCoordinatorShard._abort_timed_out": "transactions time out by their start in records",
    "coordinator/transaction/shard.py TransactionCoordinatorShard._fence": "transactions time out by their start in records",
    "coordinator/transaction/shard.py TransactionCoordinatorShard._expire": "transactional ids expire by their last change in records",
}


class Function:
    def __init__(self, path: str, name: str, node: ast.FunctionDef | ast.AsyncFunctionDef, is_method: bool) -> None:
        self.path = path
        self.name = name
        self.node = node
        arguments = node.args.posonlyargs + node.args.args
        self.positional = [argument.arg for argument in arguments[is_method and not _is_static(node) :]]
        self.has_rest = node.args.vararg is not None

    @property
    def place(self) -> str:
        return f"{self.path} {self.name}"

    def parameter(self, number: int) -> str | None:
        return self.positional[number] if number < len(self.positional) else None


def _is_static(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(decorator, ast.Name) and decorator.id == "staticmethod" for decorator in node.decorator_list)


def functions_of(path: str, tree: ast.AST, prefix: str = "", in_class: bool = False) -> Iterator[Function]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from functions_of(path, node, f"{prefix}{node.name}.", in_class=True)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield Function(path, prefix + node.name, node, in_class)
            yield from functions_of(path, node, f"{prefix}{node.name}.")


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Of a function, without the functions in it; lambdas belong to it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield child
            yield from own_nodes(child)


def kind_of(node: ast.AST) -> str | None:
    """Which time an expression is, by its name: also of what calls it, of an attribute, and of a sum with something that has no kind."""
    if isinstance(node, ast.Call) and not node.args:
        return kind_of(node.func)
    if isinstance(node, ast.Name):
        return _kind_of_name(node.id)
    if isinstance(node, ast.Attribute):
        return _kind_of_name(node.attr)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        kinds = {kind_of(node.left), kind_of(node.right)} - {None}
        return kinds.pop() if len(kinds) == 1 else None
    return None


def _kind_of_name(name: str) -> str | None:
    stripped = name.lstrip("_")
    return stripped if stripped in (WALL, MONOTONIC) else None


def dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


class Reader:
    """Of some source files, given by their paths below the package."""

    def __init__(self, sources: dict[str, str]) -> None:
        self.functions = [function for path, text in sources.items() for function in functions_of(path, ast.parse(text))]
        self._by_name: dict[str, list[Function]] = {}
        for function in self.functions:
            *owner, name = function.name.split(".")
            self._by_name.setdefault(owner[-1] if name == "__init__" and owner else name, []).append(function)

    def clock_readers(self) -> dict[str, Function]:
        """The functions that read a clock of the machine."""
        return {
            function.place: function
            for function in self.functions
            for node in own_nodes(function.node)
            if isinstance(node, ast.Attribute) and dotted(node) in CLOCKS
        }

    def wall_readers(self) -> set[str]:
        """The functions that take the wall time from a clock, or are given a clock of wall time."""
        return {
            function.place
            for function in self.functions
            for node in own_nodes(function.node)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and _is_clock_of_wall_time(node)
        }

    def mixed(self) -> list[str]:
        """Where one kind of time is given for the other, stored under its name, or compared or counted up with it."""
        return [f"{function.path}:{line}: {what}" for function in self.functions for line, what in self._mixed_in(function)]

    def _mixed_in(self, function: Function) -> Iterator[tuple[int, str]]:
        for node in own_nodes(function.node):
            if isinstance(node, ast.Call):
                yield from self._mixed_in_call(node)
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    yield from _mixed_pair(target, node.value)
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                yield from _mixed_pair(node.target, node.value)
            elif isinstance(node, ast.BinOp):
                yield from _mixed_pair(node.left, node.right)
            elif isinstance(node, ast.Compare):
                for left, right in zip([node.left, *node.comparators], node.comparators, strict=False):
                    yield from _mixed_pair(left, right)

    def _mixed_in_call(self, call: ast.Call) -> Iterator[tuple[int, str]]:
        for keyword in call.keywords:
            expected, given = _kind_of_name(keyword.arg or ""), kind_of(keyword.value)
            if expected and given and expected != given:
                yield call.lineno, f"{given} is given for {keyword.arg}"
        name = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name) else ""
        candidates = [
            function for function in self._by_name.get(name, []) if function.has_rest or len(function.positional) >= len(call.args)
        ]
        for number, argument in enumerate(call.args):
            given = kind_of(argument)
            kinds = {_kind_of_name(candidate.parameter(number) or "") for candidate in candidates}
            if given and candidates and kinds <= {WALL, MONOTONIC} and given not in kinds:
                yield call.lineno, f"{given} is given to {name} for {kinds.pop()}"


def _mixed_pair(one: ast.AST, other: ast.AST) -> Iterator[tuple[int, str]]:
    kinds = {kind_of(one), kind_of(other)}
    if kinds == {WALL, MONOTONIC}:
        yield getattr(one, "lineno", 0), "wall time and monotonic time meet"


def _is_clock_of_wall_time(node: ast.Attribute) -> bool:
    """`clock.now_ms`, as a call or as a callable. What `self._now_ms` and `request.now_ms` hold was read elsewhere."""
    return node.attr == WALL and "clock" in dotted(node.value).rpartition(".")[2]


@pytest.fixture(scope="module")
def broker_source() -> Reader:
    files = sorted(path for package in PACKAGES for path in (SOURCE / package).rglob("*.py"))
    return Reader({str(path.relative_to(SOURCE)): path.read_text() for path in files})


def test_only_the_clock_reads_the_clocks_of_the_machine(broker_source: Reader) -> None:
    assert set(broker_source.clock_readers()) == set(READS_CLOCKS)


def test_wall_time_is_read_where_it_is_compared_with_records_or_files_and_nowhere_else(broker_source: Reader) -> None:
    assert sorted(broker_source.wall_readers()) == sorted(NEEDS_WALL_TIME)


def test_wall_time_is_never_taken_for_monotonic_time_nor_the_other_way_round(broker_source: Reader) -> None:
    assert broker_source.mixed() == []


DUE = "class LogManager:\n    def due(self, now_ms, monotonic_ms): ...\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f(manager, clock):\n    manager.due(clock.now_ms(), clock.now_ms())", "now_ms is given to due for monotonic_ms"),
        ("def f(manager, monotonic_ms):\n    manager.due(monotonic_ms, monotonic_ms)", "monotonic_ms is given to due for now_ms"),
        ("def f(manager, clock):\n    manager.due(0, monotonic_ms=clock.now_ms())", "now_ms is given for monotonic_ms"),
        ("def f(clock):\n    monotonic_ms = clock.now_ms() + 5", "meet"),
        ("def f(now_ms, monotonic_ms):\n    return now_ms - monotonic_ms", "meet"),
        ("def f(self, now_ms):\n    return self._monotonic_ms + 5 <= now_ms", "meet"),
    ],
)
def test_a_mistake_is_found(text: str, expected: str) -> None:
    (mixed,) = Reader({"storage/log_manager.py": DUE, "broker/new.py": text}).mixed()
    assert mixed.startswith("broker/new.py:2: ") and expected in mixed


def test_a_new_reader_of_wall_time_is_found() -> None:
    reader = Reader({"broker/new.py": "class New:\n    def wait(self):\n        return self._clock.now_ms() + 5\n"})
    assert reader.wall_readers() == {"broker/new.py New.wait"}
    assert set(Reader({"broker/new.py": "def f():\n    return time.time()\n"}).clock_readers()) == {"broker/new.py f"}
