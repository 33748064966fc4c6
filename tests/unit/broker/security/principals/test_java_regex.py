from __future__ import annotations

import pytest

from barnabas.broker.security.principals.java_regex import compiled, replaced
from barnabas.config_def import InvalidConfig


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("CN=.*", "CN=a\rb", False),  # Java's dot stops at each line terminator
        (r"CN=[.]\.", "CN=..", True),
        (r"\w+", "ä", False),
        ("(?<user>a)", "a", True),
        ("(?<!a)b", "b", True),
    ],
)
def test_an_expression_matches_as_in_java(pattern: str, text: str, matches: bool) -> None:
    assert bool(compiled(pattern).fullmatch(text)) is matches


@pytest.mark.parametrize("pattern", [r"\p{L}+", r"\Qa.b\E", "[a-z&&[^b]]", "[a[b]]", "(", r"\x{41}"])
def test_what_python_cannot_match_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidConfig, match="cannot be used here"):
        compiled(pattern)


@pytest.mark.parametrize(
    ("pattern", "replacement", "text", "result"),
    [
        (".*", "x", "ab", "xx"),  # also the empty match at the end
        ("(a)(b)?", "[$1$2]", "a", "[a]"),
        ("(a)", "$12", "a", "a2"),
        ("(?<n>a)", r"${n}\$\\", "a", "a$\\"),
        ("a", "$0$0", "a", "aa"),
    ],
)
def test_a_replacement_is_javas(pattern: str, replacement: str, text: str, result: str) -> None:
    assert replaced(compiled(pattern), replacement, text) == result


@pytest.mark.parametrize("replacement", ["$1", "$", "$x", "${n}", "\\"])
def test_a_replacement_that_java_rejects_is_an_error(replacement: str) -> None:
    with pytest.raises(ValueError, match=r"group|escaped"):
        replaced(compiled("a"), replacement, "a")
