"""Run a broker with the settings of a server.properties file.

The file is Apache Kafka's, as it is; `--override` comes after it, as in kafka-server-start. `running/run.py` does the rest.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence

from barnabas.security.new_user import NewUser
from barnabas.tools.running.new_users import add_user_options, read_new_users
from barnabas.tools.running.overrides import read_overrides
from barnabas.tools.running.run import run, serve
from barnabas.tools.running.run_options import add_run_options
from barnabas.tools.running.settings import Settings, read_properties_file, settings


def main(arguments: Sequence[str]) -> int:
    given = build_parser().parse_args(arguments)

    new_users: list[NewUser] = []

    def make_settings() -> Settings:
        new_users[:] = read_new_users(given)
        properties = read_properties_file(given.file) if given.file is not None else {}
        overrides = read_overrides(given)
        return settings({**properties, **overrides.properties}, overrides.remarks)

    return run(make_settings, given.log_level, given.log_format, lambda config, log_format: serve(config, log_format, new_users))


def build_parser() -> ArgumentParser:
    parser = ArgumentParser("barnabas server", description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("file", nargs="?", metavar="FILE.properties", help="Kafka's server.properties; without it, Kafka's defaults")
    add_user_options(parser)
    add_run_options(parser, log_level="info")
    return parser
