"""Topic names: which may be, and which are too like each other."""

from __future__ import annotations

import pytest

from barnabas import topic_name
from barnabas.errors import InvalidTopic


@pytest.mark.parametrize("name", ["a", "A-Z_0.9", "...", "-", "_", "a" * 249, "__consumer_offsets"])
def test_a_name_of_legal_characters_is_valid(name: str) -> None:
    topic_name.validate(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("a" * 250, f"the length of '{'a' * 250}' is longer than the max allowed length 249"),
        ("a b", "'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("ü", "'ü' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("a/b", "'a/b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("a\n", "'a\n' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
    ],
)
def test_any_other_name_is_refused_in_kafkas_words(name: str, reason: str) -> None:
    with pytest.raises(InvalidTopic) as refused:
        topic_name.validate(name)
    assert str(refused.value) == f"Topic name is invalid: {reason}"


def test_names_collide_that_differ_only_in_dots_and_underscores() -> None:
    unify = topic_name.unify_collision_chars
    assert unify("topic.1_2") == unify("topic_1.2") == "topic_1_2"
    assert unify("topic.1") != unify("topic-1")


def test_kafkas_own_topics_are_internal() -> None:
    assert topic_name.is_internal("__consumer_offsets")
    assert not topic_name.is_internal("__mine")
    assert not topic_name.is_internal("__cluster_metadata")
