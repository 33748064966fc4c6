"""What the pages hide from the tests: nothing but blocks that say why they are not run."""

from __future__ import annotations

import re

import pytest

from tests.docs.snippets import compiled
from tests.documentation import PAGES, ROOT, Block, blocks, prose

LANGUAGES = {"sh", "python", "properties", "text"}  # the first two are run
REASONS = {
    "builds the project": "`make run` and `make test` are what CI runs around this test",
    "needs Docker": "an image is built, from the network",
    "needs the network": "packages are installed",
    "needs Apache Kafka with SASL": "our broker does not speak it yet",
}
ANOTHER_TEST = re.compile(r"(tests/\S+\.py) runs it")
NOT_RUN = [block for page in PAGES for block in blocks(page) if not block.is_run]
NOT_RUN_MAX = 12
every_page = pytest.mark.parametrize("page", PAGES)


@pytest.mark.parametrize("block", NOT_RUN, ids=str)
def test_a_block_that_is_not_run_has_a_known_reason(block: Block) -> None:
    elsewhere = ANOTHER_TEST.fullmatch(block.not_run or "")
    assert block.not_run in REASONS or (elsewhere is not None and (ROOT / elsewhere[1]).is_file())


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
