"""Messages from forms, and forms from messages."""

import pytest

from barnabas.console.messages.sending import Draft, DraftError, draft_of, read_draft
from tests.unit.console.messages.records import message

Headers = tuple[tuple[str, bytes | None], ...]


@pytest.mark.parametrize(
    "value", [None, b"", b"text", b"two\nlines", b"carriage\r\nreturn", b"\n first line is empty", b"\0\xff", "\u202e😀".encode(), b"  x "]
)
@pytest.mark.parametrize(
    "headers",
    [
        (),
        (("a", b"x"), ("a", None)),
        (("na:me", b"x"),),
        (("a", b"\xff"),),
        (("a", b" spaces "),),
        (("a", b"two\nlines"),),
        (("[", b"x"),),
        (("", b"x"),),
    ],
)
def test_a_message_that_is_edited_without_a_change_is_sent_as_it_was(value: bytes | None, headers: Headers) -> None:
    draft = draft_of(message(value, b"k", headers))
    sent = read_draft(
        Draft(draft.key, draft.key_writing, draft.value.replace("\n", "\r\n"), draft.value_writing, draft.headers.replace("\n", "\r\n"), "")
    )
    assert (sent.value, sent.key, sent.headers) == (value, b"k", headers)


def test_an_empty_text_is_no_key() -> None:
    assert read_draft(Draft(value="x")).key is None


@pytest.mark.parametrize(
    "draft",
    [
        Draft(value="zz", value_writing="hex"),
        Draft(value="{", value_writing="json"),
        Draft(value="x", value_writing="xml"),
        Draft(value="\udc80"),
        Draft(headers=": no name"),
        Draft(headers='[["a"]]'),
        Draft(headers='[["a", {"hex": "zz"}]]'),
        Draft(headers="[5]"),
        Draft(headers="\n".join(["a: b"] * 1001)),
        Draft(partition="-1"),
        Draft(partition="one"),
    ],
)
def test_a_form_that_cannot_be_sent_says_why(draft: Draft) -> None:
    with pytest.raises(DraftError):
        read_draft(draft)


def test_a_large_message_is_not_edited_in_a_form() -> None:
    with pytest.raises(DraftError, match="bytes"):
        draft_of(message(b"x" * 300_000))
