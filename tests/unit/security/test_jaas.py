"""sasl.jaas.config, as Java reads it; refused in the words of Kafka 4.2."""

from __future__ import annotations

import pytest

from barnabas.config_def import InvalidConfig
from barnabas.security.jaas import Jaas, parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_a_module_with_options() -> None:
    jaas = parse_jaas(f'{PLAIN} required username="alice" password="a \\"b\\" \\\\ c;=" plain=word;')
    assert jaas == Jaas(PLAIN, {"username": "alice", "password": 'a "b" \\ c;=', "plain": "word"})


def test_a_module_without_options_and_over_several_lines() -> None:
    assert parse_jaas(f"\n  {PLAIN}\n  REQUIRED ; ") == Jaas(PLAIN, {})


def test_passwords_are_not_shown() -> None:
    assert "secret" not in repr(parse_jaas(f'{PLAIN} required password="secret";'))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (" ", "Login module not specified in JAAS config"),
        ("x", "Login module control flag not specified in JAAS config"),
        ("m must x=y;", "Invalid login module control flag 'must' in JAAS config"),
        (f"{PLAIN} required username=;", "Value not specified for key 'username' in JAAS config"),
        (f"{PLAIN} required username", "Value not specified for key 'username' in JAAS config"),
        (
            f"{PLAIN} required username=a password=top secret;",
            "Value not specified for option 3 in JAAS config: put quotation marks around each value",
        ),
        (
            f'{PLAIN} required username="a" password="top"secret";',
            "JAAS config cannot be read: a quotation mark is open or stands alone",
        ),
        (f'{PLAIN} required username="a" password="b"', "JAAS config entry not terminated by semi-colon"),
        (f'{PLAIN} required username="a"; {PLAIN} required;', "JAAS config property contains 2 login modules, should be 1 module"),
        (f'{PLAIN} required username="a;', "JAAS config cannot be read: a quotation mark is open or stands alone"),
    ],
)
def test_refusals(text: str, words: str) -> None:
    with pytest.raises(InvalidConfig) as raised:
        parse_jaas(text)
    assert str(raised.value) == words
