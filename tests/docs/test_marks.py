"""What the pages hide from the tests: nothing but blocks that say why they are not run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.docs.commands import commands
from tests.docs.snippets import compiled
from tests.documentation import PAGES, ROOT, Block, blocks, prose

LANGUAGES = {"sh", "python", "properties", "toml", "json", "text"}  # the first two are run
REASONS = {
    "builds the project": "`make run` and `make test` are what CI runs around this test",
    "needs Docker": "an image is built, from the network",
    "needs the network": "packages are installed",
    "needs a broker with SASL": "the address is an example; tests/integration/client/network connects so",
}
ANOTHER_TEST = re.compile(r"(tests/\S+\.py) runs it")
NOT_RUN = [block for page in PAGES for block in blocks(page) if not block.is_run]
NOT_RUN_MAX = 12
every_page = pytest.mark.parametrize("page", PAGES)


@pytest.mark.parametrize("block", NOT_RUN, ids=str)
def test_a_block_that_is_not_run_has_a_known_reason(block: Block) -> None:
    elsewhere = ANOTHER_TEST.fullmatch(block.not_run or "")
    assert block.not_run in REASONS or elsewhere is not None
    if elsewhere is not None:
        assert not_in_test(block, (ROOT / elsewhere[1]).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("language", "source", "missing"),
    [
        ("sh", "barnabas demo  # see one work\n", []),
        ("sh", "cd shop && barnabas pipeline run\n", ["pipeline run"]),
        ("sh", "spark-submit --master x job.py\n", ["spark-submit", "--master"]),
        ("python", "from pyspark.sql import SparkSession\nSparkSession.builder.remote('x').show()\n", ["SparkSession.builder.remote"]),
    ],
)
def test_a_mark_cannot_name_a_test_of_something_else(language: str, source: str, missing: list[str]) -> None:
    demo = (ROOT / "tests/spark/test_demo.py").read_text(encoding="utf-8")
    assert not_in_test(Block("page", 1, source, language), demo) == missing


def not_in_test(block: Block, test: str) -> list[str]:
    """What a block is about and a test does not have: the tool with its command, other programs with their options, Python's calls."""
    if block.language == "python":
        return [call for call in imported_calls(block.source) if call not in test]
    return [words for words in command_words(block) if not stand_together(words.split(), test)]


def command_words(block: Block) -> Iterator[str]:
    for command in commands(block):
        for part in re.split(r"&&|[|;]", re.sub(r"\s#.*|\\$", "", command.text, flags=re.MULTILINE)):
            program, *words = part.split()
            if program == "barnabas":
                tool = [word for word in (program, *words[:2]) if re.fullmatch("[a-z-]+", word) and not word.startswith("-")]
                yield " ".join(tool[-2:])
            elif program != "cd":
                yield program
            yield from (word.partition("=")[0] for word in words if word.startswith("--"))


def stand_together(words: list[str], test: str) -> bool:
    """In any order, as in `run_pipeline` and in `"pipeline", "run"`."""
    orders = (words, words[::-1])
    return any(re.search(r"(?<![a-zA-Z-])" + "[^a-zA-Z]{1,4}".join(map(re.escape, order)) + "(?![a-zA-Z-])", test) for order in orders)


def imported_calls(source: str) -> list[str]:
    """The functions and methods that are called by the name of an import, such as SparkSession.builder.remote."""
    tree = ast.parse(source)
    imported = {name.asname or name.name for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom) for name in node.names}
    called = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in called if call.partition(".")[0] in imported and "(" not in call]


def test_few_blocks_are_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"  {block.page}:{block.line}: {block.not_run}" for block in NOT_RUN]
    with capsys.disabled():
        print(f"\n{len(NOT_RUN)} blocks of the documentation are not run:", *lines, sep="\n")
    assert len(NOT_RUN) <= NOT_RUN_MAX


@pytest.mark.parametrize("block", [block for block in NOT_RUN if block.language == "python"], ids=str)
def test_python_that_is_not_run_at_least_compiles(block: Block) -> None:
    compiled(block)


@every_page
def test_every_block_names_its_language(page: str) -> None:
    unknown = [f"{page}:{block.line}" for block in blocks(page) if block.language not in LANGUAGES]
    assert unknown == []
    assert [f"{page}:{number}" for number, line in prose(page) if "```" in line] == []


@every_page
def test_no_code_hides_behind_an_indent(page: str) -> None:
    """Where a block has no fences, nobody can tell commands from their output."""
    lines = dict(prose(page))
    assert [f"{page}:{number}: {line}" for number, line in lines.items() if line.startswith("    ") and not lines.get(number - 1)] == []


@every_page
def test_a_reason_stands_right_above_its_block(page: str) -> None:
    reasons = [line for _, line in prose(page) if "<!-- not run" in line]
    assert len(reasons) == len([block for block in blocks(page) if not block.is_run])
