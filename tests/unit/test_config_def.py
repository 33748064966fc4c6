from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.config_def import (
    DOUBLE_MAX,
    INT_MAX,
    LONG_MAX,
    ConfigKey,
    Importance,
    InvalidConfig,
    ListOf,
    OneOfAnyCase,
    Range,
    Type,
    parse_type,
    table,
    value_text,
)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Type.BOOLEAN, " TRUE ", True),
        (Type.BOOLEAN, "false", False),
        (Type.INT, " 5 ", 5),
        (Type.INT, "+5", 5),
        (Type.INT, "-2147483648", -(2**31)),
        (Type.LONG, str(LONG_MAX), LONG_MAX),
        (Type.SHORT, "32767", 32767),
        (Type.DOUBLE, "1e-3", 0.001),
        (Type.DOUBLE, "0.9d", 0.9),
        (Type.DOUBLE, "Infinity", float("inf")),
        (Type.STRING, "  a b ", "a b"),
        (Type.PASSWORD, " secret ", "secret"),
        (Type.CLASS, " a.B ", "a.B"),
        (Type.LIST, "", ()),
        (Type.LIST, " a , b,c ", ("a", "b", "c")),
        (Type.LIST, "a,,b", ("a", "", "b")),
        (Type.LIST, "a,b,a", ("a", "b")),
    ],
)
def test_a_text_is_read_as_java_reads_it(kind: Type, text: str, value: object) -> None:
    assert parse_type("x", text, kind) == value


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (Type.BOOLEAN, "yes", "Invalid value yes for configuration x: Expected value to be either true or false"),
        (Type.INT, "5.0", "Invalid value 5.0 for configuration x: Not a number of type INT"),
        (Type.INT, "0x5", "Not a number of type INT"),
        (Type.INT, "1_0", "Not a number of type INT"),
        (Type.INT, "", "Not a number of type INT"),
        (Type.INT, str(INT_MAX + 1), "Not a number of type INT"),
        (Type.LONG, "9" * 10_000, "Not a number of type LONG"),
        (Type.SHORT, "40000", "Not a number of type SHORT"),
        (Type.DOUBLE, "inf", "Not a number of type DOUBLE"),
        (Type.DOUBLE, "1_0.5", "Not a number of type DOUBLE"),
        (Type.DOUBLE, "", "Not a number of type DOUBLE"),
    ],
)
def test_a_text_java_would_not_read_is_refused_in_its_words(kind: Type, text: str, message: str) -> None:
    with pytest.raises(InvalidConfig, match=re.escape(message)):
        parse_type("x", text, kind)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (-1, "-1"),
        (0.5, "0.5"),
        (1.0, "1.0"),
        (0.0, "0.0"),
        (12345678.9, "1.23456789E7"),
        (1e7, "1.0E7"),
        (0.0001, "1.0E-4"),
        (-0.00025, "-2.5E-4"),
        (DOUBLE_MAX, "1.7976931348623157E308"),
        (float("inf"), "Infinity"),
        (float("nan"), "NaN"),
        ((), ""),
        (("a", "b"), "a,b"),
    ],
)
def test_a_value_is_written_as_java_writes_it(value: object, text: str | None) -> None:
    assert value_text(value) == text


@given(st.floats(allow_nan=False))
def test_a_number_written_is_the_number_read(value: float) -> None:
    assert parse_type("x", value_text(value) or "", Type.DOUBLE) == value


def test_a_number_that_is_none_is_in_no_range() -> None:
    with pytest.raises(InvalidConfig, match="Value must be at least 0"):
        Range(0, 1).check("x", float("nan"))


@pytest.mark.parametrize(
    ("validator", "value", "message"),
    [
        (Range(1), 0, "Invalid value 0 for configuration x: Value must be at least 1"),
        (Range(0, 1), 1.5, "Invalid value 1.5 for configuration x: Value must be no more than 1"),
        (ListOf(empty=False), (), "Configuration 'x' must not be empty. Valid values include: any non-empty value"),
        (ListOf(("a", "b"), empty=False), (), "Configuration 'x' must not be empty. Valid values include: [a, b]"),
        (ListOf(), ("a", ""), "Configuration 'x' values must not be empty."),
        (ListOf(("a", "b")), ("c",), "Invalid value c for configuration x: String must be one of: a, b"),
        (ListOf(), None, "Configuration 'x' values must not be null."),
        (OneOfAnyCase(("A", "B")), "c", "Invalid value c for configuration x: String must be one of (case insensitive): A, B"),
    ],
)
def test_a_value_that_is_not_allowed_is_refused_in_kafkas_words(validator: Range, value: object, message: str) -> None:
    with pytest.raises(InvalidConfig, match=f"^{re.escape(message)}$"):
        validator.check("x", value)


def test_a_name_is_defined_once() -> None:
    key = ConfigKey("x", Type.INT, 1, None, Importance.LOW, "X.")
    with pytest.raises(AssertionError, match="x is defined twice"):
        table((key, key))


def test_only_passwords_are_sensitive() -> None:
    assert [kind for kind in Type if ConfigKey("x", kind, None, None, Importance.LOW, "X.").sensitive] == [Type.PASSWORD]
