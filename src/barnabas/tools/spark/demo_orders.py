"""The orders of the demo: a thread generates them and sends them to a topic, at a rate or as fast as they are processed.

The thread stays a bounded number of orders ahead of the pipeline, so that retention can delete old ones.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.client.producer.producer import Producer

PRODUCTS: Final = ("apples", "bread", "cheese", "figs", "honey", "olives", "pears", "wine")
SCHEMA: Final = "product string, quantity int"
AHEAD_MAX: Final = 2_000_000
_KINDS: Final = 4096  # orders are generated once and sent repeatedly: generating them is not part of the demo
_SLICE_S: Final = 0.01
_SLICE_RECORDS: Final = 500  # orders between two readings of the clock if there is no rate
_CLOSING_AFTER_MS: Final = 3_600_000


class Pace:
    """The number of orders that are due: `rate` a second since the start (0: no limit), at most `total` (0: no end)."""

    def __init__(self, rate: int, total: int) -> None:
        self._rate = rate
        self._total = total

    def due(self, elapsed_s: float, sent: int, processed: int) -> int:
        """The number to send now; at most AHEAD_MAX orders wait to be processed."""
        due = int(elapsed_s * self._rate) - sent if self._rate else _SLICE_RECORDS
        if self._total:
            due = min(due, self._total - sent)
        return max(0, min(due, processed + AHEAD_MAX - sent))

    def is_over(self, sent: int) -> bool:
        return bool(self._total) and sent >= self._total


class Shop:
    """Sends orders from `start` until `stop`, or until all are sent; then, if requested, one far in the future that closes all windows."""

    def __init__(self, producer: Producer, topic: str, pace: Pace) -> None:
        self._producer = producer
        self._topic = topic
        self._pace = pace
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="orders", daemon=True)
        self.sent = 0
        self.processed = 0  # set by the reader
        self.failure: BaseException | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def orders_among(self, records: int) -> int:
        """The number of orders among the records read: the record that closes the windows is not an order."""
        return min(records, self.sent) if self._pace.is_over(self.sent) else records

    def _run(self) -> None:
        try:
            self._send_all()
        except BaseException as error:
            self.failure = error

    def _send_all(self) -> None:
        orders = itertools.cycle(made_up_orders(random.Random(1)))
        began = time.monotonic()
        while not self._stopping.is_set() and not self._pace.is_over(self.sent):
            due = self._pace.due(time.monotonic() - began, self.sent, self.processed)
            for key, value in itertools.islice(orders, due):
                self._producer.send(self._topic, value, key)
            self.sent += due
            if due < _SLICE_RECORDS:
                self._stopping.wait(_SLICE_S)
        if self._pace.is_over(self.sent):
            self._producer.flush()
            # A window closes when the event time of the newest order has passed its end.
            self._producer.send(self._topic, b"{}", b"closing time", timestamp=int(time.time() * 1000) + _CLOSING_AFTER_MS)
        self._producer.flush()


def made_up_orders(chance: random.Random) -> list[tuple[bytes, bytes]]:
    """The keys (customers) and values (orders) of the records."""
    return [
        (
            f"customer-{chance.randrange(1000)}".encode(),
            f'{{"product":"{chance.choice(PRODUCTS)}","quantity":{chance.randint(1, 9)}}}'.encode(),
        )
        for _ in range(_KINDS)
    ]
