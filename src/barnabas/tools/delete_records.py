"""Delete the records of partitions before given offsets, as kafka-delete-records does.

Options, messages, output and exit codes are those of Apache Kafka 4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.errors import KafkaError
from barnabas.tools.command_line.failures import AdminCommandFailed, AdminOperation, described, failed_with_message, finish
from barnabas.tools.command_line.json_plan import as_list, as_object, integer, parse_json, string
from barnabas.tools.command_line.options import Option, Options
from barnabas.tools.command_line.text import JSON, coloured, print_json
from barnabas.tools.connecting.connect import command_config_option, open_admin, read_text
from barnabas.topic_partition import TopicPartition

ABOUT: Final = "This tool helps to delete records of the given partitions down to the specified offset."
OPTIONS: Final = (
    Option("bootstrap-server", "REQUIRED: the broker to connect to.", "required", described_as="server(s) to use for bootstrapping"),
    Option(
        "offset-json-file",
        'REQUIRED: a JSON file with an offset for each partition, as in\n{"partitions":\n'
        '  [{"topic": "foo", "partition": 1, "offset": 1}],\n "version":1\n}\nwhere the offset -1 stands for the end.',
        "required",
        described_as="Offset json file path",
    ),
    command_config_option(),
    JSON,
)
_VERSION: Final = 1


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), failed_with_message)


def _execute(arguments: Sequence[str]) -> None:
    from barnabas.client.admin.topics.records import RecordsToDelete

    options = Options(OPTIONS, arguments)
    options.maybe_help_or_version(ABOUT)
    options.require("bootstrap-server", "offset-json-file")
    with open_admin(options.text("bootstrap-server"), options.optional("command-config")) as admin:
        offsets = parse_offsets(read_text(options.text("offset-json-file")))
        if not options.has("json"):
            print("Executing records delete operation")
        outcomes = admin.delete_records({partition: RecordsToDelete(offset) for partition, offset in offsets.items()})
    if options.has("json"):
        marks = {str(partition): deleted.low_watermark for partition, deleted in outcomes.successes.items()}
        print_json({"lowWatermarks": marks, "errors": {str(partition): str(error) for partition, error in outcomes.errors.items()}})
        return
    print("Records delete operation completed:")
    for partition in outcomes:
        try:
            print(f"partition: {partition}\tlow_watermark: {outcomes[partition].low_watermark}")
        except KafkaError as error:
            print(f"partition: {partition}\t{coloured('error', 'red')}: {described(error)}")


def parse_offsets(text: str) -> dict[TopicPartition, int]:
    """The offsets of a file; refuses a partition that is named twice."""
    plan = parse_json(text)
    if plan is None:
        raise AdminOperation("The input string is not a valid JSON")
    fields = as_object(plan)
    version = integer(fields, "version") if "version" in fields else _VERSION
    if version != _VERSION:
        raise AdminOperation(f"Not supported version field value {version}")
    if "partitions" not in fields:
        raise AdminOperation("Missing partitions field")
    offsets: dict[TopicPartition, int] = {}
    repeated: dict[TopicPartition, None] = {}
    for entry in map(as_object, as_list(fields["partitions"])):
        partition = TopicPartition(string(entry, "topic"), integer(entry, "partition"))
        if partition in offsets:
            repeated[partition] = None
        offsets[partition] = integer(entry, "offset", "Long")
    if repeated:
        raise AdminCommandFailed(f"Offset json file contains duplicate topic partitions: {','.join(map(str, repeated))}")
    return offsets
