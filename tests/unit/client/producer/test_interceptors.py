"""The worked examples of interceptors, and that nothing an interceptor raises gets out."""

from __future__ import annotations

from typing import Any

from barnabas.client.producer.interceptors import ProducerInterceptors
from barnabas.client.producer.record import ProducerRecord, RecordMetadata


class Prefix:
    """Prepends a prefix, counts successes and failures."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.succeeded = 0
        self.failed = 0
        self.closed = 0

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        return ProducerRecord(record.topic, f"{self.prefix}{record.value}", record.key)

    def on_acknowledgement(self, metadata: RecordMetadata, error: Exception | None) -> None:
        if error is None:
            self.succeeded += 1
        else:
            self.failed += 1

    def close(self) -> None:
        self.closed += 1


class Broken(Prefix):
    def __init__(self) -> None:
        super().__init__("")

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        raise ValueError("on_send")

    def on_acknowledgement(self, metadata: RecordMetadata, error: Exception | None) -> None:
        raise ValueError("on_acknowledgement")

    def close(self) -> None:
        raise ValueError("close")


def sent(*chain: Any) -> Any:
    return ProducerInterceptors(chain).on_send(ProducerRecord("t", "kafka")).value


def test_the_chain_runs_in_the_order_of_the_setting() -> None:
    assert sent(Prefix("prefix1-"), Prefix("prefix2-")) == "prefix2-prefix1-kafka"
    assert sent(Prefix("prefix2-"), Prefix("prefix1-")) == "prefix1-prefix2-kafka"


def test_the_next_one_continues_from_the_last_good_output() -> None:
    assert sent(Prefix("prefix1-"), Broken(), Prefix("prefix2-")) == "prefix2-prefix1-kafka"


def test_all_are_told_of_the_end_even_if_one_fails() -> None:
    first, last = Prefix(""), Prefix("")
    chain = ProducerInterceptors([first, Broken(), last])
    for number in range(10):
        chain.on_acknowledgement(RecordMetadata("t", 0, number, 0), ValueError() if number == 9 else None)
    assert (first.succeeded, first.failed) == (last.succeeded, last.failed) == (9, 1)


def test_all_are_closed_even_if_one_fails() -> None:
    first, last = Prefix(""), Prefix("")
    ProducerInterceptors([first, Broken(), last]).close()
    assert (first.closed, last.closed) == (1, 1)


def test_one_that_takes_headers_gets_them() -> None:
    seen: list[Any] = []

    class WithHeaders(Prefix):
        def on_acknowledgement(self, metadata: RecordMetadata, error: Exception | None, headers: Any = ()) -> None:
            seen.append(headers)

    ProducerInterceptors([WithHeaders("")]).on_acknowledgement(RecordMetadata("t", 0, 0, 0), None, [("h", b"1")])
    assert seen == [[("h", b"1")]]
