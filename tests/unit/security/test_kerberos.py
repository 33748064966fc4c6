"""What is about Kerberos and needs no Kerberos; the rest is in tests/integration/kerberos."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from barnabas.config_def import InvalidConfig
from barnabas.security.jaas import parse_jaas
from barnabas.security.kerberos import KerberosLogin, gssapi_library, kerberos_reason

JAAS = 'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true keyTab="/k" principal="a@B" serviceName="kafka";'


def test_a_jaas_text_of_java_names_keytab_principal_and_service() -> None:
    assert KerberosLogin.of_jaas(parse_jaas(JAAS)) == KerberosLogin("/k", "a@B", "kafka")


def test_without_the_package_the_commands_are_named_that_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(InvalidConfig, match=r"sasl\.mechanism is GSSAPI.*pip install 'barnabas\[gssapi\]'.*libkrb5-dev"):
        gssapi_library("sasl.mechanism")


def test_a_keytab_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match=f"the.setting: the keytab {tmp_path}/none cannot be read"):
        KerberosLogin(f"{tmp_path}/none").require_readable_keytab("the.setting")
    KerberosLogin().require_readable_keytab("the.setting")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Major (1): Unspecified GSS failure.  Minor code may provide\nmore, Minor (2): No ticket", "No ticket"),
        ("A token was invalid", "A token was invalid"),
        ("Major (1): Bad, Minor (0): ", "Major (1): Bad, Minor (0):"),
    ],
)
def test_the_reason_is_what_the_library_says_last(text: str, reason: str) -> None:
    assert kerberos_reason(Exception(text)) == reason
