"""Carries out the steps of `steps` on a broker, one after the other, and returns their answers."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark_barnabas.exactly_once.log_client import shared
from pyspark_barnabas.exactly_once.steps import Append, End, Initialize, ListOpen, ReadLog, Step, Steps
from pyspark_barnabas.exactly_once.transactions import Transactions

if TYPE_CHECKING:
    from pyspark_barnabas.connections import Client
    from pyspark_barnabas.write.write_options import WriteOptions

T = TypeVar("T")


class RandomNames:
    def nonce(self) -> str:
        return uuid.uuid4().hex


class Runner:
    """Runs the steps of one task, commit or abort."""

    def __init__(self, client: Client, options: WriteOptions) -> None:
        self.transactions = Transactions(client, options.prefix, options.transaction_timeout_ms)
        self.names = RandomNames()
        self._client = client
        self._log = shared(client, options.decision_topic, options.prefix)

    def run(self, steps: Steps[T]) -> T:
        """The result of the steps; blocks."""
        return self._client.run(self._run(steps))

    async def _run(self, steps: Steps[T]) -> T:
        answer: Any = None
        try:
            while True:
                try:
                    step = steps.send(answer)
                except StopIteration as end:
                    result: T = end.value
                    return result
                answer = await self.take(step)
        finally:
            steps.close()

    async def take(self, step: Step) -> Any:
        """Carries out one step on the client's loop and returns its answer."""
        if isinstance(step, ReadLog):
            return await self._log.read()
        if isinstance(step, Append):
            return await self._log.append(step.records)
        if isinstance(step, Initialize):
            return await self.transactions.initialize(step.slot)
        if isinstance(step, End):
            return await self.transactions.end(step.transactions, step.commit)
        assert isinstance(step, ListOpen)
        return await self.transactions.list_open()
