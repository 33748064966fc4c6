"""A masked field leaves by no way."""

import json

import pytest

from barnabas.console.messages.export import export_of
from barnabas.console.messages.filters import KeyFilter, parse_filter
from barnabas.console.messages.masks import MASKED, InvalidMask, parse_masks
from barnabas.console.messages.rows import detail_of, row_of
from barnabas.console.messages.sending import DraftError, draft_of
from tests.unit.console.messages.records import message

CARD = {"mask": "$..card", "topic": "ord*"}
VALUE = json.dumps({"id": 5, "card": "4111-22", "inner": {"card": ["4111-22"]}}).encode()


def test_a_masked_field_is_replaced_before_anything_sees_it() -> None:
    masked = message(VALUE, masks=(CARD,))
    assert masked.value.data == {"id": 5, "card": MASKED, "inner": {"card": MASKED}}
    for shown in (repr(row_of(masked)), repr(detail_of(masked)), repr(export_of(masked))):
        assert "4111" not in shown and "31 31" not in shown


def test_other_topics_are_not_masked() -> None:
    assert "4111" in message(VALUE, masks=(CARD,), topic="other").value.text


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("text", "4111"),
        ("path", '$.card contains "4111"'),
        ("path", '$.card == "4111-22"'),
        ("expression", '"4111" in value["card"]'),
        ("expression", 'value["card"] > "4"and value["card"] < "5"'),
    ],
)
def test_a_masked_field_cannot_be_guessed_by_filtering(kind: str, text: str) -> None:
    chosen = parse_filter(kind, text)
    assert chosen is not None
    assert chosen.matches(message(VALUE)) and not chosen.matches(message(VALUE, masks=(CARD,)))


@pytest.mark.parametrize(
    "raw", [b"card=4111-22", b'{"card": "4111-22"', b"\xff4111-22", b'{"card": NaN, "x": "4111-22"}', b"4111", b'"4111"', b"null"]
)
@pytest.mark.parametrize("reading", ["auto", "text", "hex", "json", "registry", "number"])
def test_a_value_that_cannot_be_parsed_is_withheld_where_a_mask_applies(raw: bytes, reading: str) -> None:
    masked = message(raw, masks=(CARD,), values=reading)  # type: ignore[arg-type]
    assert (masked.value.form, masked.value.text, masked.value.data) == ("withheld", MASKED, None)
    assert export_of(masked)[0].value.text is None
    for kind, text in (("text", "4111"), ("expression", '"4" in value'), ("path", "$")):
        chosen = parse_filter(kind, text)
        assert chosen is not None and not chosen.matches(masked)


@pytest.mark.parametrize("reading", ["text", "hex", "number"])
def test_other_readings_do_not_go_around_a_mask(reading: str) -> None:
    assert message(VALUE, masks=(CARD,), values=reading).value.data["card"] == MASKED  # type: ignore[arg-type]


def test_a_value_too_large_to_be_parsed_is_withheld() -> None:
    value = message(b'{"card":"4111","x":"' + b"y" * 1_100_000 + b'"}', masks=(CARD,)).value
    assert value.form == "withheld" and "larger" in value.note


def test_a_masked_key_is_not_found_by_searching_for_it() -> None:
    assert KeyFilter(b"k").matches(message())
    masked = message(masks=({"mask": "$", "part": "key"},))
    assert masked.key.text == MASKED and not KeyFilter(b"k").matches(masked)


def test_headers_are_masked_in_any_case() -> None:
    masked = message(headers=(("Authorization", b"secret"), ("x", b"y")), masks=({"mask": "$", "part": "header:authorization"},))
    assert [(name, header.text) for name, header in masked.headers] == [("Authorization", MASKED), ("x", "y")]


def test_a_dead_letter_has_the_masks_of_where_it_came_from_and_its_reason_does_not_quote() -> None:
    headers = (("__barnabas.errors.topic", b"orders"), ("__barnabas.errors.message", b"4111-22 is no number"))
    masked = message(VALUE, headers=headers, masks=(CARD,), topic="letters")
    assert "4111" not in repr(row_of(masked))


def test_a_masked_message_is_not_copied_into_a_form() -> None:
    with pytest.raises(DraftError, match="Masks"):
        draft_of(message(VALUE, masks=(CARD,)))


@pytest.mark.parametrize(
    "table",
    [
        "x",
        [5],
        [{}],
        [{"mask": "card"}],
        [{"mask": "$.card", "topics": "x"}],
        [{"mask": "$.card", "part": "values"}],
        [{"mask": "$.card", "part": "header:x"}],
        [{"mask": "$.card", "topic": ""}],
    ],
)
def test_a_mask_that_is_not_understood_stops_the_start(table: object) -> None:
    with pytest.raises(InvalidMask):
        parse_masks(table)
