"""Restart the brokers of a cluster one after the other, by a command for each. (Not in Kafka.)

Before each broker, and after the last, it waits until all replicas are in sync, so that clients notice nothing where topics have enough
replicas. It uses only requests that any admin client may send, so that it works with Apache Kafka too.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from barnabas.errors import KafkaError
from barnabas.tools.administration.rolling_restart import (
    ReplicaSet,
    RestartedBroker,
    check_command,
    command_for,
    not_in_sync,
    parse_ids,
    restart_order,
)
from barnabas.tools.command_line.failures import ToolError, failed_with_message, finish, message_of
from barnabas.tools.command_line.options import Option, Options
from barnabas.tools.connecting.connect import bootstrap_option, command_config_option, open_admin
from barnabas.tools.connecting.listening import refusing
from barnabas.tools.connecting.process_watch import ProcessWatch
from barnabas.tools.connecting.reachable import giving_up_after, quiet_clients

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin

ABOUT: Final = "Restarts the brokers of a cluster one after the other."
_TIMEOUT_S: Final = 600
_POLL_S: Final = 0.25
_CALL_TIMEOUT_MS: Final = 5_000
_QUICK: Final = {"request.timeout.ms": str(_CALL_TIMEOUT_MS), "default.api.timeout.ms": str(_CALL_TIMEOUT_MS)}
_STEADY_LOOKS: Final = 2  # views of two moments: one broker may know a little late that a replica has left the ISR
OPTIONS: Final = (
    Option("rolling", "One broker after the other; the controller is the last."),
    Option(
        "command",
        "The command that restarts a broker, run by the shell of this machine, as in 'ssh {host} systemctl restart barnabas'. "
        "{host}, {port} and {id} stand for the broker's.",
        "required",
        described_as="command",
    ),
    bootstrap_option(),
    command_config_option(),
    Option("brokers", "Only these, as in 1,2.", "required", described_as="ids"),
    Option(
        "timeout", "How long to wait for a broker, and for its replicas to be in sync.", "required", "Integer", "seconds", str(_TIMEOUT_S)
    ),
    Option("dry-run", "Show the commands in their order; nothing is run."),
)


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), failed_with_message)


def _execute(arguments: Sequence[str]) -> int:
    options = Options(OPTIONS, arguments)
    options.maybe_help_or_version(ABOUT)
    options.require("rolling", "command", "bootstrap-server")
    command = options.text("command")
    check_command(command)
    timeout_s = options.integer("timeout")
    if timeout_s <= 0:
        raise ToolError(f"--timeout takes a number of seconds greater than 0, not {timeout_s}")
    chosen = parse_ids(options.text("brokers")) if options.has("brokers") else None
    with quiet_clients(), open_admin(options.text("bootstrap-server"), options.optional("command-config"), _QUICK) as admin:
        restart = RollingRestart(admin, command, timeout_s, options.optional("command-config"))
        order = restart.order(chosen)
        if options.has("dry-run"):
            for broker in order:
                print(f"broker {broker.id}: {command_for(command, broker)}")
            return 0
        restart.run(order)
    return 0


class RollingRestart:
    def __init__(self, admin: Admin, command: str, timeout_s: int, config_file: str | None) -> None:
        self._admin = admin
        self._command = command
        self._timeout_s = timeout_s
        self._config_file = config_file

    def order(self, chosen: Sequence[int] | None) -> list[RestartedBroker]:
        cluster = self._admin.describe_cluster()
        down = refusing(cluster.nodes)
        if down:
            raise ToolError(f"broker {min(down)} does not run: start it first; nothing was restarted")
        brokers = [RestartedBroker(node.id, node.host, node.port) for node in cluster.nodes]
        return restart_order(brokers, None if cluster.controller is None else cluster.controller.id, chosen)

    def run(self, order: Sequence[RestartedBroker]) -> None:
        partitions = self._partitions()
        behind = not_in_sync(partitions)
        if behind:
            raise ToolError(f"not all replicas are in sync: {behind}. Wait for them, or start their brokers; nothing was restarted")
        alone = [partition.name for partition in partitions if len(partition.replicas) == 1]
        if alone:
            print(
                f"Partitions with one replica are not available while their broker restarts: {len(alone)}, such as {alone[0]}.", flush=True
            )
        for number, broker in enumerate(order):
            print(f"Restarting broker {broker.id} ({broker.host}:{broker.port}), {number + 1} of {len(order)}.", flush=True)
            began = time.monotonic()
            try:
                self._restart(broker)
            except ToolError as error:
                rest = ",".join(str(one.id) for one in order[number:])
                done = ",".join(str(one.id) for one in order[:number]) or "none"
                raise ToolError(f"{message_of(error)} Restarted: {done}. Go on with --brokers {rest}") from error
            print(f"Broker {broker.id} is back and all replicas are in sync after {time.monotonic() - began:.0f} s.", flush=True)
        self._elect()

    def _restart(self, broker: RestartedBroker) -> None:
        """Returns when the broker has ended, is registered again, and all replicas of the cluster are in sync."""
        deadline = time.monotonic() + self._timeout_s
        watch = ProcessWatch(broker.host, broker.port)
        try:
            watch.look(time.monotonic())
            self._run_command(broker, watch, deadline)
            while not watch.look(time.monotonic()):
                if time.monotonic() >= deadline:
                    raise ToolError(
                        f"Broker {broker.id} did not end within {self._timeout_s} s, although its command succeeded: check the command."
                    )
                time.sleep(_POLL_S)
        finally:
            watch.close()
        self._wait_until_back(broker, deadline)
        self._wait_until_in_sync(broker, deadline)

    def _run_command(self, broker: RestartedBroker, watch: ProcessWatch, deadline: float) -> None:
        command = command_for(self._command, broker)
        # A session of its own, so that a signal ends the shell with all that it has started.
        with subprocess.Popen(command, shell=True, stdin=subprocess.DEVNULL, start_new_session=True) as process:
            try:
                while process.poll() is None:
                    watch.look(time.monotonic())
                    if time.monotonic() >= deadline:
                        _signal(process, signal.SIGKILL)
                        raise ToolError(f"The command for broker {broker.id} did not end within {self._timeout_s} s: {command}.")
                    time.sleep(_POLL_S / 5)
            except KeyboardInterrupt:
                _signal(process, signal.SIGINT)  # the terminal does not send it to another session
                raise
        if process.returncode:
            raise ToolError(f"The command for broker {broker.id} failed with exit code {process.returncode}: {command}.")

    def _wait_until_back(self, broker: RestartedBroker, deadline: float) -> None:
        """Until the broker itself answers and lists itself: it does so only after its new registration has reached it."""
        reason = ""
        while time.monotonic() < deadline:
            try:
                with (
                    giving_up_after(None),
                    open_admin(f"{broker.host}:{broker.port}", self._config_file, _QUICK) as own,
                ):
                    if broker.id in {node.id for node in own.describe_cluster().nodes if not node.is_fenced}:
                        return
            except KafkaError as error:
                reason = f" ({message_of(error)})"
            time.sleep(_POLL_S)
        raise ToolError(f"Broker {broker.id} is not back after {self._timeout_s} s{reason}: look into its log.")

    def _wait_until_in_sync(self, broker: RestartedBroker, deadline: float) -> None:
        looks, behind = 0, "the cluster does not answer"
        while looks < _STEADY_LOOKS:
            try:
                listed = {node.id for node in self._admin.describe_cluster().nodes}
                behind = not_in_sync(self._partitions()) if broker.id in listed else f"broker {broker.id} is not listed"
            except KafkaError as error:
                behind = message_of(error)
            looks = 0 if behind else looks + 1
            if time.monotonic() >= deadline and behind:
                raise ToolError(f"Not all replicas are in sync {self._timeout_s} s after the restart of broker {broker.id}: {behind}.")
            time.sleep(_POLL_S)

    def _partitions(self) -> list[ReplicaSet]:
        listed = self._admin.list_topics(list_internal=True)
        topics: dict[str, Any] = self._admin.describe_topics(sorted(listed)).successes if listed else {}
        return [
            ReplicaSet(
                f"{name}-{info.partition}",
                tuple(node.id for node in info.replicas),
                tuple(node.id for node in info.isr),
                info.leader is not None and not info.leader.is_empty,
            )
            for name, topic in sorted(topics.items())
            for info in topic.partitions
        ]

    def _elect(self) -> None:
        """The broker that restarted last leads nothing: leaders return to the preferred replicas."""
        from barnabas.client.admin.topics.elections import ElectionType

        elected = self._admin.elect_leaders(ElectionType.PREFERRED, None).successes
        if elected:
            print(f"Elected the preferred leaders of {len(elected)} partition{'' if len(elected) == 1 else 's'}.", flush=True)


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
