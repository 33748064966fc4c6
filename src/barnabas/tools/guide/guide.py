"""What `barnabas TOOL` adds to the tool: help on stdout, a default cluster, one line if no broker answers, and a suggestion after a
misspelt word.

The tool itself behaves as Kafka's script, which prints its options on stderr with exit code 1. Scripts rely on that and call
`barnabas kafka-TOOL`. Nothing here changes what a tool does with a complete command line.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from types import ModuleType

from barnabas.tools.command_line.failures import ToolError
from barnabas.tools.command_line.grammar import Grammar, grammar_of
from barnabas.tools.connecting.default_cluster import client_settings, with_default_cluster
from barnabas.tools.connecting.reachable import giving_up_after, patience_ms
from barnabas.tools.guide.suggestions import suggestions


def run_guided(tool: ModuleType, words: Sequence[str], run: Callable[[ModuleType, Sequence[str]], int]) -> int:
    grammar = grammar_of(tool)
    if {"--help", "-h"} & grammar.given(words).keys():
        return _show_help(tool, words, run)
    try:
        runs_alone, instead = getattr(tool, "RUNS_ALONE", False), getattr(tool, "INSTEAD_OF_ADDRESS", ())
        complete, notice = with_default_cluster(grammar, words, os.environ, runs_alone=runs_alone, instead=instead)
    except ToolError as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return 1
    if notice:
        print(notice, file=sys.stderr)
    try:
        with giving_up_after(_patience_ms(tool, grammar, complete)):
            code = run(tool, complete)
    except SystemExit as refused:  # of argparse
        code = refused.code if isinstance(refused.code, int) else 1
    if code:
        for line in suggestions(grammar, words):
            print(f"barnabas: {line}", file=sys.stderr)
    return code


def _patience_ms(tool: ModuleType, grammar: Grammar, words: Sequence[str]) -> int:
    return patience_ms(grammar, words, client_settings(grammar, words), getattr(tool, "PATIENCE_OPTION", None))


def _show_help(tool: ModuleType, words: Sequence[str], run: Callable[[ModuleType, Sequence[str]], int]) -> int:
    with redirect_stderr(sys.stdout):
        try:
            run(tool, ["--help"] if hasattr(tool, "OPTIONS") else words)
        except SystemExit:  # of argparse
            pass
    return 0
