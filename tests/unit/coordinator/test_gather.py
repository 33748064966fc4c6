from __future__ import annotations

from itertools import permutations

import pytest

from barnabas.coordinator.gather import Gather


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_results_are_passed_on_in_the_order_of_the_questions_whatever_the_order_of_the_answers(order: tuple[int, ...]) -> None:
    passed_on: list[list[str]] = []
    gather: Gather[str] = Gather(3, passed_on.append)
    slots = [gather.slot(index) for index in range(3)]
    gather.all_asked()
    for index in order:
        assert passed_on == []
        slots[index](f"answer {index}")
    assert passed_on == [["answer 0", "answer 1", "answer 2"]]


def test_answers_that_come_at_once_wait_for_the_last_question() -> None:
    passed_on: list[list[int]] = []
    gather: Gather[int] = Gather(1, passed_on.append)
    gather.slot(0)(7)
    assert passed_on == []
    gather.all_asked()
    assert passed_on == [[7]]


def test_no_question_has_no_answers() -> None:
    passed_on: list[list[int]] = []
    Gather[int](0, passed_on.append).all_asked()
    assert passed_on == [[]]
