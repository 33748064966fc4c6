"""The settings of each process, made from those of one; and the lines between parent and child."""

from __future__ import annotations

import os
import socket
from argparse import ArgumentTypeError

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.security.new_user import NewUser
from barnabas.tools.command_line.exit_codes import CannotRun
from barnabas.tools.processes.messages import Announcement, Instructions, StatusReport, decode_report
from barnabas.tools.processes.process_count import process_count
from barnabas.tools.processes.process_plan import process_plan, store_path
from barnabas.tools.processes.process_settings import check_directories, check_ports, first_node_id, machine_listener, process_properties


def config(**properties: str) -> BrokerConfig:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return BrokerConfig.from_properties({"log.dirs": "/a,/b", "listeners": "PLAINTEXT://:9092", **named})


def process(number: int, first_id: int = 1, **properties: str) -> BrokerConfig:
    return BrokerConfig.from_properties(process_properties(config(**properties), number, first_id))


def test_ids_ports_and_directories_are_consecutive() -> None:
    second = process(
        2,
        7,
        broker_id="7",
        advertised_listeners="PLAINTEXT://kafka.example:19092",
        metrics_listener="https://[::1]:9404",
        num_partitions="5",
    )
    assert (second.broker_id, second.log_dirs) == (8, ("/a/broker-2", "/b/broker-2"))
    assert [str(listener) for listener in second.listeners] == ["PLAINTEXT://:9093"]
    assert [str(listener) for listener in second.advertised_listeners] == ["PLAINTEXT://kafka.example:19093"]
    assert (second.text("metrics.listener"), second.number("num.partitions")) == ("https://[::1]:9405", 5)


def test_the_health_of_all_has_the_port_before_those_of_the_brokers() -> None:
    listener = machine_listener(config(metrics_listener="http://localhost:9404"))
    assert listener is not None
    assert listener.port == 9404
    assert process(1, metrics_listener="http://localhost:9404").text("metrics.listener") == "http://localhost:9405"
    assert machine_listener(config(metrics_listener="https://localhost:9404")) is None
    assert machine_listener(config()) is None


def test_any_free_port_stays_that_for_each_process() -> None:
    assert [listener.port for listener in process(3, listeners="PLAINTEXT://:0").listeners] == [0]


def test_the_rack_is_this_machine_unless_it_is_given() -> None:
    assert process(2).text("broker.rack") == socket.gethostname()
    assert process(2, broker_rack="r1").text("broker.rack") == "r1"


def test_log_dir_gives_way_to_the_directories_of_the_process() -> None:
    properties = process_properties(BrokerConfig.from_properties({"log.dir": "/one"}), 2, 1)
    assert BrokerConfig.from_properties(properties).log_dirs == ("/one/broker-2",)


def test_listeners_need_room_between_their_ports() -> None:
    listeners = "PLAINTEXT://:9092,OTHER://:9093"
    configs = [
        process(number, listeners=listeners, listener_security_protocol_map="PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT") for number in (1, 2)
    ]
    with pytest.raises(CannotRun, match="port 9093 would be that of OTHER of node 1 and PLAINTEXT of node 2: leave 2 ports"):
        check_ports(configs)


def test_a_port_beyond_the_last_is_refused() -> None:
    with pytest.raises(CannotRun, match="choose a lower one"):
        process(2, listeners="PLAINTEXT://:65535")


def test_ids_begin_at_1_where_the_parent_has_the_metadata() -> None:
    assert first_node_id(config(), is_shared=False) == 1
    assert first_node_id(config(broker_id="1"), is_shared=False) == 1
    with pytest.raises(CannotRun, match="set it to 1"):
        first_node_id(config(broker_id="0"), is_shared=False)


def test_ids_begin_at_the_given_one_with_zookeeper() -> None:
    assert first_node_id(config(broker_id="40"), is_shared=True) == 40
    with pytest.raises(CannotRun, match=r"needs broker\.id"):
        first_node_id(config(), is_shared=True)


def test_the_directory_of_one_process_is_not_that_of_several() -> None:
    with pytest.raises(CannotRun, match="the directory of one process"):
        check_directories(config(log_dirs="/data/broker-1"))


def test_the_plan_has_all_processes_and_the_store_of_a_single_broker() -> None:
    plan = process_plan(config(), 3, None, "info", "text", None, ())
    assert [one.broker_id for one in plan.configs] == [1, 2, 3]
    assert (plan.roots, plan.store) == (("/a", "/b"), "/a/barnabas.db")
    assert store_path(config(metadata_log_dir="/m")) == "/m/barnabas.db"
    assert store_path(config(broker_id="1", zookeeper_connect="localhost")) is None


def test_instructions_arrive_as_they_were_sent() -> None:
    user = NewUser.of_password("alice", "secret", replaces=True)
    sent = Instructions(2, 12, {"listeners": "PLAINTEXT://:1", "ssl.key.password": "pässword\n"}, "/s", "info", "json", "/logs", [user])
    assert Instructions.decode(sent.encode()) == sent
    assert sent.encode().count(b"\n") == 1
    assert "pässword" not in repr(sent)


def test_a_broker_with_any_free_port_keeps_it_over_a_restart() -> None:
    def listeners(given: str) -> str:
        instructions = Instructions(1, 1, {"listeners": given}, None, "info", "text")
        return instructions.with_ports(["PLAINTEXT://localhost:40123"]).properties["listeners"]

    assert listeners("PLAINTEXT://localhost:0") == "PLAINTEXT://localhost:40123"
    assert listeners("PLAINTEXT://localhost:9092") == "PLAINTEXT://localhost:9092"


@pytest.mark.parametrize("report", [Announcement(1, "id", ["a"], ["b"], None), StatusReport(""), StatusReport("it is full")])
def test_reports_arrive_as_they_were_sent(report: Announcement | StatusReport) -> None:
    assert decode_report(report.encode()) == report


@pytest.mark.parametrize("line", [b"", b"hello\n", b"[]\n", b"{}\n", b'{"ready": {"a": 1}}\n', b"\xff\n"])
def test_other_lines_are_no_reports(line: bytes) -> None:
    assert decode_report(line) is None


def test_auto_is_one_process_for_each_core_of_this_one() -> None:
    assert process_count("auto") == len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert process_count("3") == 3
    for text in ("0", "-1", "101", "x", ""):
        with pytest.raises(ArgumentTypeError, match="or auto"):
            process_count(text)
