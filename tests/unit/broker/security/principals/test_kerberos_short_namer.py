"""The rules and names are those of Kafka's KerberosNameTest and KerberosRuleTest."""

from __future__ import annotations

import pytest

from barnabas.broker.security.principals.kerberos_short_namer import KerberosName, KerberosShortNamer, with_parameters
from barnabas.config_def import InvalidConfig
from barnabas.security.errors import AuthenticationError

WITHOUT_APP = [r"RULE:[1:$1](App\..*)s/App\.(.*)/$1/g", r"RULE:[2:$1](App\..*)s/App\.(.*)/$1/g", "DEFAULT"]


def in_case(case: str) -> list[str]:
    return [
        f"RULE:[1:$1]/{case}",
        f"RULE:[2:$1](Test.*)s/ABC///{case}",
        f"RULE:[2:$1](ABC.*)s/ABC/XYZ/g/{case}",
        rf"RULE:[2:$1](App\..*)s/App\.(.*)/$1/g/{case}",
        f"RULE:[2:$1]/{case}",
        "DEFAULT",
    ]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("App.service-name/example.com@REALM.COM", ("App.service-name", "example.com", "REALM.COM")),
        ("App.service-name@REALM.COM", ("App.service-name", None, "REALM.COM")),
        ("user", ("user", None, None)),
    ],
)
def test_a_name_has_up_to_three_parts(text: str, parts: tuple[str, str | None, str | None]) -> None:
    assert KerberosName.parse(text) == parts
    assert str(KerberosName.parse(text)) == text


def test_a_name_of_more_parts_is_refused() -> None:
    with pytest.raises(AuthenticationError, match="Malformed Kerberos name"):
        KerberosName.parse("a/b/c@REALM.COM")


@pytest.mark.parametrize(
    ("rules", "name", "short_name"),
    [
        (WITHOUT_APP, "App.service-name/example.com@REALM.COM", "service-name"),
        (WITHOUT_APP, "App.service-name@REALM.COM", "service-name"),
        (WITHOUT_APP, "user/host@REALM.COM", "user"),
        (in_case("L"), "User@REALM.COM", "user"),
        (in_case("L"), "TestABC/host@FOO.COM", "test"),
        (in_case("L"), "ABC_User_ABC/host@FOO.COM", "xyz_user_xyz"),
        (in_case("L"), "App.SERVICE-name/example.com@REALM.COM", "service-name"),
        (in_case("L"), "User/root@REALM.COM", "user"),
        (in_case("U"), "User@REALM.COM", "USER"),
        (in_case("U"), "TestABC/host@FOO.COM", "TEST"),
        (in_case("U"), "ABC_User_ABC/host@FOO.COM", "XYZ_USER_XYZ"),
        (in_case("U"), "App.SERVICE-name/example.com@REALM.COM", "SERVICE-NAME"),
        ([], "plain", "plain"),
    ],
)
def test_the_first_rule_that_applies_makes_the_name(rules: list[str], name: str, short_name: str) -> None:
    assert KerberosShortNamer("REALM.COM", rules).short_name(KerberosName.parse(name)) == short_name


@pytest.mark.parametrize("name", ["user@OTHER.COM", "user/host@OTHER.COM"])
def test_a_user_of_another_realm_is_nobody_by_default(name: str) -> None:
    with pytest.raises(AuthenticationError, match=r"No rules of sasl\.kerberos\.principal\.to\.local\.rules apply"):
        KerberosShortNamer("REALM.COM", ["DEFAULT"]).short_name(KerberosName.parse(name))


def test_a_rule_that_leaves_the_realm_is_refused() -> None:
    with pytest.raises(AuthenticationError, match="Non-simple name"):
        KerberosShortNamer("REALM.COM", ["RULE:[1:$1@$0]"]).short_name(KerberosName.parse("user@REALM.COM"))


@pytest.mark.parametrize(
    "rule",
    [
        "default",
        "DEFAUL",
        "DEFAULT/L",
        "DEFAULT/g",
        "rule:[1:$1]",
        "rule:[1:$1]/L/U",
        "rule:[1:$1]/U/L",
        "rule:[1:$1]/LU",
        "RULE:[1:$1/L",
        "RULE:[1:$1]/l",
        "RULE:[2:$1](ABC.*)s/ABC/XYZ/L/g",
        "RULE:[:$1]",
    ],
)
def test_other_rules_stop_the_start(rule: str) -> None:
    with pytest.raises(InvalidConfig, match="Invalid rule"):
        KerberosShortNamer("REALM.COM", [rule])


def test_parameters_are_replaced_once() -> None:
    assert with_parameters("", []) == ""
    assert with_parameters("hello", ["a", "b"]) == "hello"
    assert with_parameters("hello $0", ["too", "many"]) == "hello too"
    assert with_parameters("hello $0", ["no recursion $1"]) == "hello no recursion $1"


@pytest.mark.parametrize("form", ["$0", "hello $a"])
def test_a_parameter_that_is_not_there_is_refused(form: str) -> None:
    with pytest.raises(ValueError, match=r"index 0|bad format"):
        with_parameters(form, [])
