"""The config of the controller, a part of the broker's config.

When unclean.leader.election.enable changes dynamically, the server sets `unclean_leader_election_enable` and then calls
`Controller.enable_unclean_leader_election`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class ControllerConfig:
    inter_broker_listener_name: str = "PLAINTEXT"
    delete_topic_enable: bool = True  # delete.topic.enable
    unclean_leader_election_enable: bool = False  # unclean.leader.election.enable, for topics without their own value
    auto_leader_rebalance_enable: bool = False  # auto.leader.rebalance.enable; false without a cluster
    leader_imbalance_check_interval_s: int = 300  # leader.imbalance.check.interval.seconds
    leader_imbalance_per_broker_percentage: int = 10  # leader.imbalance.per.broker.percentage
