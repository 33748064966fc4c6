"""The delegation tokens of a broker, made from its settings."""

from __future__ import annotations

from random import Random

from barnabas.broker.clock import Clock
from barnabas.broker.config import BrokerConfig
from barnabas.broker.security.credentials import Credentials
from barnabas.broker.security.tokens.delegation_tokens import DelegationTokens, TokenConfig
from barnabas.broker.security.tokens.token_rules import TokenRules
from barnabas.metadata.client import TreeClient


def delegation_tokens(config: BrokerConfig, tree: TreeClient, credentials: Credentials, clock: Clock, random: Random) -> DelegationTokens:
    token_config = TokenConfig(
        config.text("delegation.token.secret.key") or config.text("delegation.token.master.key"),
        TokenRules(config.number("delegation.token.max.lifetime.ms"), config.number("delegation.token.expiry.time.ms")),
        config.number("delegation.token.expiry.check.interval.ms"),
    )
    protocols = {listener.listener_name: listener.security_protocol for listener in config.broker_listeners}
    return DelegationTokens(token_config, protocols, tree, credentials, clock, random)
