"""The options of every command that runs a broker."""

from __future__ import annotations

import os
from argparse import ArgumentParser

from barnabas.tools.running import logs


def add_run_options(parser: ArgumentParser, log_level: str) -> None:
    parser.add_argument(
        "--override", action="append", default=[], metavar="NAME=VALUE", help="set a setting, whatever the file says; may be repeated"
    )
    parser.add_argument(
        "--override-file",
        action="append",
        default=[],
        metavar="FILE.properties",
        help="settings that come after those of the file and before --override; for secrets, which --override shows to other users",
    )
    parser.add_argument("--log-level", choices=logs.LEVELS, default=log_level, help="default: %(default)s")
    parser.add_argument("--log-format", choices=logs.FORMATS, default="text", help="default: %(default)s")
    parser.add_argument(
        "--logs",
        metavar="DIR",
        default=os.environ.get("LOG_DIR") or None,
        help="write server.log, controller.log, state-change.log … there, as Kafka does; --log-level is then that of standard error; "
        "default: $LOG_DIR",
    )
