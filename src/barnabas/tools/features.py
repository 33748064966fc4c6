"""Show and change the feature levels of a cluster, as kafka-features does.

Options, messages, output and exit codes are those of Apache Kafka 4.2.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.errors import KafkaError
from barnabas.tools.administration import feature_versions as versions
from barnabas.tools.command_line.arguments import Parser, failed, number
from barnabas.tools.command_line.failures import BadArgument, Ended, Terse, ToolError, execution, finish, message_of
from barnabas.tools.command_line.text import coloured, print_json
from barnabas.tools.connecting.connect import open_admin

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin
    from barnabas.client.admin.cluster.features import FeatureMetadata


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), failed)


def build_parser() -> Parser:
    parser = Parser(prog="kafka-features", description="This tool manages feature flags in Kafka.")
    connection = parser.add_mutually_exclusive_group(required=True)
    connection.add_argument("--bootstrap-server", metavar="HOST:PORT", help="brokers to connect to, with commas between them")
    connection.add_argument("--bootstrap-controller", metavar="HOST:PORT", help="controllers to connect to, with commas between them")
    parser.add_argument("--command-config", metavar="FILE", help="a properties file for the admin client")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    describe = commands.add_parser("describe", help="show the feature levels")
    describe.add_argument("--node-id", type=number("Integer"), help="the node to ask; any without it")
    for name in ("upgrade", "downgrade"):
        command = commands.add_parser(name, help=f"{name} feature levels")
        command.add_argument("--metadata", help="DEPRECATED: the metadata version, for example 3.3-IV3")
        command.add_argument("--release-version", help="the release to which all features go, for example 4.2-IV1")
        command.add_argument("--feature", action="append", help="a feature and its level, for example metadata.version=5")
        if name == "downgrade":
            command.add_argument("--unsafe", action="store_true", help="even if metadata may be lost for good")
        command.add_argument("--dry-run", action="store_true", help="only check whether it can be done")
    disable = commands.add_parser("disable", help="disable features: the same as a downgrade to 0")
    disable.add_argument("--feature", action="append", help="a feature")
    disable.add_argument("--unsafe", action="store_true", help="even if metadata may be lost for good")
    disable.add_argument("--dry-run", action="store_true", help="only check whether it can be done")
    mapping = commands.add_parser("version-mapping", help="show the feature levels of a release")
    mapping.add_argument("--release-version", help=f"the release; default: {versions.LATEST_PRODUCTION}")
    needs = commands.add_parser("feature-dependencies", help="show what a feature level depends on")
    needs.add_argument("--feature", action="append", required=True, help="a feature and its level, for example metadata.version=5")
    parser.add_json()
    return parser


def _execute(arguments: Sequence[str]) -> None:
    given = build_parser().parse(list(arguments))
    controllers = given.bootstrap_controller
    with open_admin(given.bootstrap_server, given.command_config, bootstrap_controllers=controllers) as admin:
        _COMMANDS[given.command](admin, given)


def _describe(admin: Admin, given: Any) -> None:
    if given.node_id is not None and given.node_id < 0:
        raise BadArgument(f"Invalid node id {given.node_id}: must be non-negative.")
    with execution():
        metadata = admin.describe_features(node_id=given.node_id)
    if given.json:
        print_json(_as_json(metadata))
        return
    epoch = "-" if metadata.finalized_features_epoch is None else str(metadata.finalized_features_epoch)
    for name, supported in sorted(metadata.supported_features.items()):
        finalized = metadata.finalized_features.get(name)
        level = 0 if finalized is None else finalized.max_version_level
        print(
            f"Feature: {coloured(name, 'bold')}\tSupportedMinVersion: {level_text(name, supported.min_version)}"
            f"\tSupportedMaxVersion: {level_text(name, supported.max_version)}"
            f"\tFinalizedVersionLevel: {level_text(name, level)}\tEpoch: {epoch}"
        )


def _as_json(metadata: FeatureMetadata) -> dict[str, Any]:
    features = [
        {
            "feature": name,
            "supportedMin": supported.min_version,
            "supportedMax": supported.max_version,
            "finalized": metadata.finalized_features[name].max_version_level if name in metadata.finalized_features else 0,
        }
        for name, supported in sorted(metadata.supported_features.items())
    ]
    return {"epoch": metadata.finalized_features_epoch, "features": features}


def level_text(feature: str, level: int) -> str:
    if feature != versions.METADATA_VERSION:
        return str(level)
    return versions.metadata_name(level) or f"UNKNOWN {level}"


def _upgrade(admin: Admin, given: Any) -> None:
    _change(admin, given, given.command, "UPGRADE" if given.command == "upgrade" else _downgrade_type(given))


def _downgrade_type(given: Any) -> str:
    return "UNSAFE_DOWNGRADE" if given.unsafe else "SAFE_DOWNGRADE"


def _change(admin: Admin, given: Any, operation: str, kind: str) -> None:
    if given.release_version is not None and (given.metadata is not None or given.feature is not None):
        raise Terse("Can not specify `release-version` with other feature flags.")
    levels: dict[str, int] = {}
    if given.release_version is not None:
        metadata = _metadata_level(given.release_version)
        levels[versions.METADATA_VERSION] = metadata
        for feature in versions.FEATURES:
            level = versions.default_level(feature, metadata)
            if kind != "UPGRADE" or level > 0:
                levels[feature] = level
    elif given.metadata is not None:
        print(" `metadata` flag is deprecated and may be removed in a future release.")
        levels[versions.METADATA_VERSION] = _metadata_level(given.metadata)
    for text in given.feature or ():
        name, level = parse_level(text)
        if name in levels:
            raise ToolError(f"Feature {name} was specified more than once.")
        levels[name] = level
    _update(admin, operation, levels, kind, given)


def _metadata_level(text: str) -> int:
    try:
        return versions.metadata_level(text)
    except ValueError as error:
        raise Terse(str(error)) from None


def _disable(admin: Admin, given: Any) -> None:
    levels: dict[str, int] = {}
    for name in given.feature or ():
        if name in levels:
            raise ToolError(f"Feature {name} was specified more than once.")
        levels[name] = 0
    _update(admin, "disable", levels, _downgrade_type(given), given)


def _update(admin: Admin, operation: str, levels: dict[str, int], kind: str, given: Any) -> None:
    from barnabas.client.admin.cluster.features import FeatureUpdate, UpgradeType

    if not levels:
        raise Terse(f"You must specify at least one feature to {operation}")
    updates = {name: FeatureUpdate(level, UpgradeType[kind]) for name, level in levels.items()}
    dry_run = given.dry_run
    outcomes = admin.update_features(updates, validate_only=dry_run)
    if given.json:
        errors = {name: message_of(error) for name, error in sorted(outcomes.errors.items())}
        print_json({"dryRun": dry_run, "levels": {name: level for name, level in levels.items() if name not in errors}, "errors": errors})
        if errors:
            raise Ended(1)
        return
    for name, level in sorted(levels.items()):
        error: KafkaError | None = outcomes.errors.get(name)
        if error is not None:
            what = f"disable {name}" if operation == "disable" else f"{operation} {name} to {level}"
            print(f"{'Can not' if dry_run else 'Could not'} {what}. {message_of(error)}")
        else:
            done = "disabled." if operation == "disable" else f"{operation}d to {level}."
            print(f"{name}{' can be ' if dry_run else ' was '}{done}")
    if outcomes.errors:
        raise Terse(f"{len(outcomes.errors)} out of {len(levels)} operation(s) failed.")


def parse_level(text: str) -> tuple[str, int]:
    name, equals, level = text.partition("=")
    if not equals:
        raise ToolError(f"Can't parse feature=level string {text}: equals sign not found.")
    level = level.strip()
    if not re.fullmatch(r"[+-]?[0-9]{1,5}", level) or not -(2**15) <= int(level) < 2**15:
        raise ToolError(f"Can't parse feature=level string {text}: unable to parse {level} as a short.")
    return name.strip(), int(level)


def _version_mapping(admin: Admin, given: Any) -> None:
    release = given.release_version or versions.LATEST_PRODUCTION
    metadata = _metadata_level(release)
    if given.json:
        print_json({"metadata.version": metadata} | {feature: versions.default_level(feature, metadata) for feature in versions.FEATURES})
        return
    print(f"metadata.version={metadata} ({release})")
    for feature in versions.FEATURES:
        print(f"{feature}={versions.default_level(feature, metadata)}")


def _dependencies(admin: Admin, given: Any) -> None:
    if given.json:
        print_json({f"{name}={level}": versions.DEPENDENCIES.get((name, level), {}) for name, level in map(parse_level, given.feature)})
        return
    for text in given.feature:
        name, level = parse_level(text)
        if name == versions.METADATA_VERSION:
            version = versions.metadata_name(level)
            if version is None:
                raise Terse(f"Unknown metadata.version {level}")
            print(f"{name}={level} ({version}) has no dependencies.")
            continue
        if name not in versions.FEATURES:
            raise Terse(f"Unknown feature: {name}")
        if not 0 <= level < len(versions.FEATURES[name]):
            raise BadArgument(f"No feature:{name} with feature level {level}")
        needed = versions.DEPENDENCIES.get((name, level))
        if needed is None:
            print(f"{name}={level} has no dependencies.")
            continue
        print(f"{name}={level} requires:")
        for other, least in needed.items():
            print(f"    {other}={least}" + (f" ({versions.metadata_name(least)})" if other == versions.METADATA_VERSION else ""))


_COMMANDS: Final = {
    "describe": _describe,
    "upgrade": _upgrade,
    "downgrade": _upgrade,
    "disable": _disable,
    "version-mapping": _version_mapping,
    "feature-dependencies": _dependencies,
}
