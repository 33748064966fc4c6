"""Show which versions of which requests each broker understands, as kafka-broker-api-versions does.

Options, messages, output and exit codes are those of Apache Kafka 4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from barnabas.errors import KafkaError
from barnabas.protocol.registry import APIS
from barnabas.tools.command_line.failures import ToolError, described, failed_with_message, finish
from barnabas.tools.command_line.options import Option, Options
from barnabas.tools.command_line.text import JSON, print_json
from barnabas.tools.connecting.connect import command_config_option, load_properties, open_admin

ABOUT: Final = "This tool helps to retrieve broker version information."
OPTIONS: Final = (
    command_config_option(),
    Option("bootstrap-server", "REQUIRED: the broker to connect to.", "required", described_as="server(s) to use for bootstrapping"),
    JSON,
)
_REQUEST_TIMEOUT_MS: Final = 5000
# What brokers and controllers ask of each other: of ZooKeeper's days, of the Raft quorum, and of brokers' registration.
_NOT_FOR_CLIENTS: Final = frozenset({4, 5, 6, 7, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82})


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), failed_with_message)


def _execute(arguments: Sequence[str]) -> None:
    options = Options(OPTIONS, arguments)
    options.maybe_help_or_version(ABOUT)
    options.require("bootstrap-server")
    bootstrap = options.text("bootstrap-server")
    timeout = {"request.timeout.ms": str(_REQUEST_TIMEOUT_MS), "default.api.timeout.ms": str(2 * _REQUEST_TIMEOUT_MS)}
    load_properties(options.optional("command-config"))
    with open_admin(bootstrap, options.optional("command-config"), timeout) as admin:
        try:
            nodes = admin.describe_cluster().nodes
        except KafkaError as error:
            raise ToolError(f"Request METADATA failed on brokers {_unreached(bootstrap)}") from error
        outcomes = admin.describe_api_versions([node.id for node in nodes])
    if options.has("json"):
        print_json({str(node_id): _as_json(versions) for node_id, versions in outcomes.successes.items()})
        return
    for node in nodes:
        failed = outcomes.errors.get(node.id)
        print(f"{node} -> {version_text(outcomes[node.id])}" if failed is None else f"{node} -> ERROR: {described(failed)}")


def _unreached(bootstrap: str) -> str:
    """The brokers as Kafka's client numbers them before it knows who they are."""
    brokers = (f"{address} (id: {-number} rack: null isFenced: false)" for number, address in enumerate(bootstrap.split(","), 1))
    return f"[{', '.join(brokers)}]"


def _as_json(versions: Any) -> dict[str, Any]:
    return {
        api.name or str(key): {"key": key, "min": api.min_version, "max": api.max_version} for key, api in versions.api_versions.items()
    }


def version_text(versions: Any) -> str:
    """One line for each API: its versions, and the one that this client would use."""
    lines = {key: _api_text(api) for key, api in versions.api_versions.items()}
    for key, api in APIS.items():
        if key not in lines and key not in _NOT_FOR_CLIENTS:
            lines[key] = f"{api.name}({key}): UNSUPPORTED"
    return "(\n\t" + ",\n\t".join(lines[key] for key in sorted(lines)) + "\n)"


def _api_text(api: Any) -> str:
    known = APIS.get(api.key)
    versions = f"{api.min_version} to {api.max_version}" if api.min_version != api.max_version else str(api.min_version)
    if known is None:
        return f"UNKNOWN({api.key}): {versions}"
    if known.highest_version < api.min_version:
        usable = "unusable: node too new"
    elif api.max_version < known.lowest_version:
        usable = "unusable: node too old"
    else:
        usable = f"usable: {min(known.highest_version, api.max_version)}"
    return f"{known.name}({api.key}): {versions} [{usable}]"
