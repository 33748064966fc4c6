from __future__ import annotations

import logging
import ssl

import pytest

from barnabas.config_def import InvalidConfig
from barnabas.security.tls.ciphers import openssl_name
from barnabas.security.tls.contexts import client_context
from barnabas.security.tls.settings import TlsSettings

ECDHE = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"


def context(*suites: str, versions: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")) -> ssl.SSLContext:
    return client_context(TlsSettings({"ssl.cipher.suites": suites, "ssl.enabled.protocols": versions}), checks_host=True)


@pytest.mark.parametrize(
    ("name", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384", "ECDHE-ECDSA-AES256-SHA384"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_128_CCM_8", "DHE-RSA-AES128-CCM8"),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
        ("SSL_RSA_WITH_3DES_EDE_CBC_SHA", "DES-CBC3-SHA"),
        ("ECDHE-RSA-AES128-SHA", "ECDHE-RSA-AES128-SHA"),
    ],
)
def test_a_name_of_java_becomes_one_of_openssl(name: str, openssl: str) -> None:
    assert openssl_name(name) == openssl


def test_only_the_named_suites_of_tls_1_2_are_used() -> None:
    names = {cipher["name"] for cipher in context(ECDHE, "TLS_AES_256_GCM_SHA384").get_ciphers()}
    assert {name for name in names if not name.startswith("TLS_")} == {"ECDHE-RSA-AES256-GCM-SHA384"}


def test_a_version_without_a_named_suite_is_not_spoken() -> None:
    assert context(ECDHE).maximum_version is ssl.TLSVersion.TLSv1_2
    assert context("TLS_AES_256_GCM_SHA384").minimum_version is ssl.TLSVersion.TLSv1_3
    with pytest.raises(InvalidConfig, match="no suite for a version"):
        context(ECDHE, versions=("TLSv1.3",))


def test_suites_of_tls_1_3_cannot_be_chosen_which_the_log_says(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        context("TLS_AES_256_GCM_SHA384")
    assert "Python cannot choose" in caplog.text


@pytest.mark.parametrize("name", ["TLS_ECDHE_RSA_WITH_NOTHING", "NO-SUCH-CIPHER"])
def test_an_unknown_suite_is_refused(name: str) -> None:
    with pytest.raises(InvalidConfig, match=r"ssl\.cipher\.suites cannot be used: the cipher suite .*NO"):
        context(ECDHE, name)
