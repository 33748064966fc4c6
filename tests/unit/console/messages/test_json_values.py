"""JSON is shown as it was sent."""

import pytest

from barnabas.console.messages.json_values import DEPTH_MAX, format_json, parse_json


@pytest.mark.parametrize(
    "text",
    ["1.10", "12345678901234567.8", "1e400", "-0.0", '{"a":[1,2.50,{"b":null}],"c":true}', '"\\ud800"', '"\u202e é 😀"', "[]", "{}"],
)
def test_numbers_and_texts_stay_as_they_were_written(text: str) -> None:
    assert format_json(parse_json(text)) == text


def test_it_is_indented_on_request() -> None:
    assert format_json(parse_json('{"a":[1.0,{}]}'), 2) == '{\n  "a": [\n    1.0,\n    {}\n  ]\n}'


@pytest.mark.parametrize(
    "text", ["NaN", "[Infinity]", "{'a': 1}", "", "1 2", "[" * 100_000, "[" * (DEPTH_MAX + 1) + "]" * (DEPTH_MAX + 1), "1" * 5000]
)
def test_what_is_no_json_or_too_deep_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_json(text)


def test_what_only_schemas_have_becomes_a_text() -> None:
    assert format_json({"n": float("nan"), "i": float("-inf")}) == '{"n":"nan","i":"-inf"}'
