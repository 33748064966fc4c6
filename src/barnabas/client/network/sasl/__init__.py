"""SASL of a client: who it says it is, on a connection that has just been opened. PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER."""

from __future__ import annotations

from barnabas.client.clock import Clock
from barnabas.client.config.config import ClientConfig
from barnabas.client.network.sasl.authenticator import SaslAuthenticator
from barnabas.client.network.sasl.credentials import credentials
from barnabas.client.network.sasl.mechanism import Mechanism
from barnabas.client.network.sasl.oauthbearer import OAuthBearer
from barnabas.client.network.sasl.plain import Plain
from barnabas.client.network.sasl.scram import HASHES, Scram
from barnabas.client.network.sasl.tokens import TokenLogin, token_source
from barnabas.config_def import InvalidConfig

__all__ = ["SaslAuthenticator", "authenticator"]


def authenticator(config: ClientConfig, clock: Clock) -> SaslAuthenticator:
    """For sasl.mechanism; raises InvalidConfig for one that is not known here, and for credentials that are missing."""
    name = config["sasl.mechanism"]
    if name == "OAUTHBEARER":
        login = TokenLogin(config, token_source(config, clock), clock)

        async def with_token() -> Mechanism:
            return OAuthBearer(await login.token(), login.extensions)

        return SaslAuthenticator(name, with_token, login.close)
    if name != "PLAIN" and name not in HASHES:
        known = ", ".join(["PLAIN", *HASHES, "OAUTHBEARER"])
        raise InvalidConfig(f"sasl.mechanism {name} is not supported here: set it to one of {known}")
    known_credentials = credentials(config)

    async def with_password() -> Mechanism:
        given = await known_credentials()
        if name == "PLAIN":
            return Plain(given.username, given.password)
        return Scram(name, given.username, given.password, token_auth=given.token_auth)

    return SaslAuthenticator(name, with_password)
