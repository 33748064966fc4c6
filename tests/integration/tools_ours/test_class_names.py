"""The names that `run-class` takes are those of classes in Kafka's jars, in each version that the tests have."""

from __future__ import annotations

from zipfile import ZipFile

import pytest

from barnabas.tools.run_class import CLASSES
from tests import kafka

pytestmark = pytest.mark.java

# In jars of their own, which the tests do not fetch.
ELSEWHERE = {"org.apache.kafka.shell.MetadataShell"}


def test_each_name_is_that_of_a_class_and_no_class_of_a_tool_is_missing() -> None:
    names = {name for of_tool in CLASSES.values() for name in of_tool}
    simple_names = {_simple(name) for name in names}
    in_jars: set[str] = set()
    for jars in (kafka.zookeeper_tools, kafka.zookeeper_mode, kafka.prepare):
        for jar in kafka.available(jars).glob("kafka[-_]*.jar"):
            with ZipFile(jar) as files:
                in_jars |= {file.removesuffix(".class").replace("/", ".") for file in files.namelist() if file.endswith(".class")}
    assert names - ELSEWHERE == {name for name in in_jars if _simple(name) in simple_names}


def _simple(name: str) -> str:
    return name.rpartition(".")[2]
