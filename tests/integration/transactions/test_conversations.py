"""Every request about transactions, in every version, right or wrong, is answered as Apache Kafka 4.2 answers it."""

from __future__ import annotations

import pytest

from tests.integration.transactions.cases import CASES

pytestmark = pytest.mark.java


@pytest.mark.parametrize("name", list(CASES))
def test_a_conversation_goes_as_with_kafka(name: str, said: dict[str, list[list[str]]]) -> None:
    ours, theirs = said[name]
    assert ours == theirs
