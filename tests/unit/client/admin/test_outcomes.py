"""What became of each thing that was asked for."""

from __future__ import annotations

import pytest

from barnabas.client.admin.outcomes import Outcomes
from barnabas.client.errors import UnknownServerError
from barnabas.errors import TopicExists

FAILED = TopicExists("it is there")
MIXED = Outcomes(["a", "b", "c"], {"a": 1, "c": 3}, {"b": FAILED})


def test_a_key_gives_its_value() -> None:
    assert MIXED["a"] == 1


def test_a_key_that_failed_raises_its_error() -> None:
    with pytest.raises(TopicExists, match="it is there"):
        MIXED["b"]


def test_a_key_that_was_not_asked_for_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        MIXED["d"]


def test_keys_stand_in_the_order_in_which_they_were_asked_for() -> None:
    assert list(MIXED) == ["a", "b", "c"]
    assert len(MIXED) == 3


def test_a_key_that_failed_is_still_one_of_them() -> None:
    assert "b" in MIXED
    assert "d" not in MIXED


def test_all_raises_the_first_error() -> None:
    two: Outcomes[str, int] = Outcomes(["x", "y"], {}, {"y": FAILED, "x": UnknownServerError("first")})
    with pytest.raises(UnknownServerError, match="first"):
        two.all()


def test_all_is_a_dict_where_nothing_failed() -> None:
    assert Outcomes(["x"], {"x": None}, {}).all() == {"x": None}


def test_successes_and_errors_are_told_apart() -> None:
    assert MIXED.successes == {"a": 1, "c": 3}
    assert MIXED.errors == {"b": FAILED}


def test_what_is_returned_may_be_changed_without_harm() -> None:
    MIXED.errors.clear()
    MIXED.successes.clear()
    assert MIXED.errors and MIXED.successes


def test_a_key_asked_for_twice_has_one_outcome() -> None:
    assert list(Outcomes(["a", "a"], {"a": 1}, {})) == ["a"]


def test_it_shows_values_and_errors() -> None:
    assert repr(MIXED) == "Outcomes({'a': 1, 'b': TopicExists('it is there'), 'c': 3})"
