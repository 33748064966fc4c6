"""What the controller takes from the broker's configuration.

The owner changes `unclean_leader_election_enable` when the dynamic config changes, and then tells the controller so.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class ControllerConfig:
    inter_broker_listener_name: str = "PLAINTEXT"
    delete_topic_enable: bool = True  # delete.topic.enable
    unclean_leader_election_enable: bool = False  # unclean.leader.election.enable, of topics that do not say otherwise
    auto_leader_rebalance_enable: bool = False  # auto.leader.rebalance.enable; a lone broker leads everything anyway
    leader_imbalance_check_interval_s: int = 300  # leader.imbalance.check.interval.seconds
    leader_imbalance_per_broker_percentage: int = 10  # leader.imbalance.per.broker.percentage
