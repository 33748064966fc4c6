from __future__ import annotations

import subprocess
import sys

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.broker.security.principal_builder import AuthenticationContext, PrincipalBuilder, principal_builder
from barnabas.config_def import InvalidConfig
from barnabas.endpoint import SecurityProtocol
from barnabas.security.errors import AuthenticationError
from barnabas.security.principal import ANONYMOUS, KafkaPrincipal
from tests.unit.security.certificates import issued


class TeamPrincipals(PrincipalBuilder):
    def configure(self, configs: dict[str, str]) -> None:
        self.team = configs["the.team"]

    def build(self, context: AuthenticationContext) -> KafkaPrincipal:
        return KafkaPrincipal("Team", self.team)


class NoBuilder:
    pass


def no_class() -> None:
    raise AssertionError("a setting made the broker call a function")


def built(context: AuthenticationContext, **settings: str) -> KafkaPrincipal:
    properties = {name.replace("_", "."): text for name, text in settings.items()}
    return principal_builder(BrokerConfig({"log.dirs": "/unused", **properties}), "EXTERNAL").build(context)


def of_certificate(certificate: bytes | None) -> AuthenticationContext:
    return AuthenticationContext(SecurityProtocol.SSL, "EXTERNAL", "10.0.0.1", certificate)


def of_sasl(mechanism: str, authorization_id: str, certificate: bytes | None = None) -> AuthenticationContext:
    return AuthenticationContext(SecurityProtocol.SASL_SSL, "EXTERNAL", "10.0.0.1", certificate, mechanism, authorization_id)


def test_a_client_without_authentication_is_anonymous() -> None:
    assert built(AuthenticationContext(SecurityProtocol.PLAINTEXT, "EXTERNAL", "10.0.0.1")) == ANONYMOUS
    assert built(of_certificate(None)) == ANONYMOUS


def test_a_certificate_is_named_by_its_subject() -> None:
    assert str(built(of_certificate(issued("duke").der))) == "User:CN=duke"


def test_the_rules_of_a_listener_make_the_name() -> None:
    rules = {
        "ssl_principal_mapping_rules": "RULE:^CN=(.*)$/everywhere/",
        "listener_name_external_ssl_principal_mapping_rules": "RULE:^CN=(.*)$/$1/U",
    }
    assert str(built(of_certificate(issued("duke").der), **rules)) == "User:DUKE"


def test_with_sasl_the_certificate_does_not_count() -> None:
    assert str(built(of_sasl("SCRAM-SHA-512", "alice", issued("duke").der))) == "User:alice"


def test_a_kerberos_name_becomes_a_short_name() -> None:
    rules = {"sasl_kerberos_principal_to_local_rules": "RULE:[2:$1@$0](.*@REALM\\.COM)s/@.*//"}
    assert str(built(of_sasl("GSSAPI", "alice/host@REALM.COM"), **rules)) == "User:alice"


def test_without_a_default_realm_no_kerberos_name_is_in_it() -> None:
    """Not even one whose realm is empty."""
    with pytest.raises(AuthenticationError, match=r"No rules of sasl\.kerberos\.principal\.to\.local\.rules apply"):
        built(of_sasl("GSSAPI", "alice@"))


def test_a_listener_without_gssapi_does_not_load_kerberos() -> None:
    code = (
        "import sys; from barnabas.broker.config import BrokerConfig; "
        "from barnabas.broker.security.principal_builder import principal_builder; "
        "principal_builder(BrokerConfig({'log.dirs': '/unused'}), 'EXTERNAL'); assert 'gssapi' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_sasl_without_an_authorization_id_is_nobody() -> None:
    with pytest.raises(ValueError, match="authorization id"):
        built(of_sasl("PLAIN", ""))


def test_a_class_of_ones_own_makes_the_principal() -> None:
    own = {"principal_builder_class": f"{__name__}.TeamPrincipals", "the_team": "blue"}
    assert str(built(of_certificate(None), **own)) == "Team:blue"


@pytest.mark.parametrize("name", ["no.such.Class", f"{__name__}.NoBuilder", f"{__name__}.no_class", f"{__name__}.Missing"])
def test_a_class_that_cannot_be_used_stops_the_start(name: str) -> None:
    with pytest.raises(InvalidConfig, match=r"principal\.builder\.class.*PrincipalBuilder"):
        built(of_certificate(None), principal_builder_class=name)
