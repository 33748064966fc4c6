"""Builds the controller's config from the broker's config."""

from __future__ import annotations

from barnabas.broker.config import BrokerConfig
from barnabas.controller.config import ControllerConfig


def controller_config(config: BrokerConfig, is_clustered: bool) -> ControllerConfig:
    """A broker without a cluster leads every partition, so it needs no leader rebalance."""
    return ControllerConfig(
        config.inter_broker_listener_name,
        config.flag("delete.topic.enable"),
        config.flag("unclean.leader.election.enable"),
        is_clustered and config.flag("auto.leader.rebalance.enable"),
        config.number("leader.imbalance.check.interval.seconds"),
        config.number("leader.imbalance.per.broker.percentage"),
    )
