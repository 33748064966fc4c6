"""SASL authentication of a client on a new connection: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER and GSSAPI."""

from __future__ import annotations

import asyncio

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
    """The authenticator for sasl.mechanism; raises InvalidConfig for an unsupported mechanism and for missing credentials."""
    name = config["sasl.mechanism"]
    if name == "OAUTHBEARER":
        login = TokenLogin(config, token_source(config, clock), clock)

        async def with_token(host: str) -> Mechanism:
            return OAuthBearer(await login.token(), login.extensions)

        return SaslAuthenticator(name, with_token, login.close)
    if name == "GSSAPI":
        from barnabas.client.network.sasl.gssapi import Kerberos

        kerberos = Kerberos(config)

        async def with_ticket(host: str) -> Mechanism:
            return await asyncio.to_thread(kerberos.begin, host)

        return SaslAuthenticator(name, with_ticket)
    if name != "PLAIN" and name not in HASHES:
        supported = ", ".join(["PLAIN", *HASHES, "OAUTHBEARER", "GSSAPI"])
        raise InvalidConfig(f"sasl.mechanism {name} is not supported here: set it to one of {supported}")
    get_credentials = credentials(config)

    async def with_password(host: str) -> Mechanism:
        current = await get_credentials()
        if name == "PLAIN":
            return Plain(current.username, current.password)
        return Scram(name, current.username, current.password, token_auth=current.token_auth)

    return SaslAuthenticator(name, with_password)
