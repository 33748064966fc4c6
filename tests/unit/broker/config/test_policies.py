"""Policies: loaded by dotted path and configured with the broker's settings; the error names a missing class."""

from __future__ import annotations

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.broker.config.policies import CREATE_TOPIC_POLICY, load_policy
from barnabas.config_def import InvalidConfig
from tests.unit.broker.policy_examples import AtLeastTwoPartitions


def config(path: str) -> BrokerConfig:
    return BrokerConfig.from_properties({CREATE_TOPIC_POLICY: path, "rules.limit": "5"})


def test_without_the_setting_there_is_no_policy() -> None:
    assert load_policy(BrokerConfig.from_properties({}), CREATE_TOPIC_POLICY) is None


def test_a_policy_is_made_and_given_all_settings_known_or_not() -> None:
    policy = load_policy(config("tests.unit.broker.policy_examples.AtLeastTwoPartitions"), CREATE_TOPIC_POLICY)
    assert isinstance(policy, AtLeastTwoPartitions)
    assert policy.configs["rules.limit"] == "5"


@pytest.mark.parametrize("path", ["com.example.Policy", "Policy", "barnabas.errors.Nothing"])
def test_a_class_that_is_not_there_is_refused_with_the_setting_and_the_fix(path: str) -> None:
    with pytest.raises(InvalidConfig, match=r"create\.topic\.policy\.class\.name: no Python class .* PYTHONPATH"):
        load_policy(config(path), CREATE_TOPIC_POLICY)


@pytest.mark.parametrize("path", ["barnabas.errors.__doc__", "os.abort", "barnabas.errors.KafkaError"])
def test_nothing_is_called_but_a_class_with_the_methods_of_a_policy(path: str) -> None:
    with pytest.raises(
        InvalidConfig, match=r"create\.topic\.policy\.class\.name: it must be a class with the methods configure, validate, close"
    ):
        load_policy(config(path), CREATE_TOPIC_POLICY)
