"""The runner itself: what a page shows that does not work is reported with its place, what was typed, and what came of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import network
from tests.docs.commands import Command, commands, missing_line
from tests.docs.run_pages import Outcome
from tests.docs.test_pages import read_pages
from tests.documentation import Block, blocks

PAGE = """# A page that is wrong

```sh
barnabas topics --bootstrap-server localhost:9092 --create --topic one    # prints Created topic one.
cd /
pwd    # prints /
barnabas topics --bootstrap-server localhost:9092 --delete --topic two
barnabas server nowhere.properties
```

```python
first = "seen in the next block"
```

```python
print(first)  # prints seen in the next block
print(second)
```

```sh
echo it works
```

```text output
it does not … work
```

<!-- not run: for a reason -->
```sh
false
```
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    page = tmp_path_factory.mktemp("docs") / "wrong.md"
    page.write_text(PAGE)
    return read_pages(tmp_path_factory.mktemp("reader"), str(page))


def failure_at(outcomes: list[Outcome], line: int) -> str:
    return next(str(outcome) for outcome in outcomes if outcome.failure is not None and outcome.place.endswith(f":{line}"))


def test_what_works_is_no_failure(outcomes: list[Outcome]) -> None:
    failed = [outcome.place.rpartition("/")[2] for outcome in outcomes if outcome.failure is not None]
    assert failed == ["wrong.md:7", "wrong.md:8", "wrong.md:16", "wrong.md:25"]


def test_a_command_that_fails_is_shown_with_its_exit_code_and_output(outcomes: list[Outcome]) -> None:
    report = failure_at(outcomes, 7)
    assert "    barnabas topics --bootstrap-server localhost:9092 --delete --topic two\nended with exit code 1\n" in report
    assert "Topic 'two' does not exist as expected" in report


def test_a_broker_that_does_not_start_is_shown_with_what_it_says(outcomes: list[Outcome]) -> None:
    report = failure_at(outcomes, 8)
    assert "ended with exit code 1 instead of running on" in report
    assert "nowhere.properties" in report.partition("running on")[2]


def test_python_that_fails_is_shown_with_the_line_of_the_page(outcomes: list[Outcome]) -> None:
    report = failure_at(outcomes, 16)
    assert "line 17, in <module>" in report
    assert "NameError: name 'second' is not defined" in report


def test_output_that_differs_is_shown_beside_what_the_page_says(outcomes: list[Outcome]) -> None:
    report = failure_at(outcomes, 25)
    assert "did not print the line: it does not … work\nbut:\nit works\n" in report


@pytest.mark.parametrize(
    ("expected", "is_printed"),
    [("a b", True), ("a  b", True), ("a", False), ("a …", True), ("… b\nc", True), ("c\na b", False), ("", True)],
)
def test_three_dots_in_expected_output_stand_for_anything(expected: str, is_printed: bool) -> None:
    assert (missing_line("a   b\nc\n", expected) is None) == is_printed


def test_a_here_document_and_a_continued_line_are_one_command_each() -> None:
    block = Block("page", 10, "cat > f <<'EOF'\na=1\n\nEOF\n# a remark\necho a \\\n  b\ncat <<< c\n", "sh")
    assert [(command.line, command.text) for command in commands(block)] == [
        (10, "cat > f <<'EOF'\na=1\n\nEOF"),
        (15, "echo a \\\n  b"),
        (17, "cat <<< c"),
    ]


def test_the_console_runs_until_it_is_stopped_and_the_console_consumer_ends() -> None:
    assert Command(1, "barnabas console --port 8090").service == "console"
    assert not Command(1, "barnabas console --port 8090").starts_broker
    assert Command(1, "barnabas console-consumer --topic orders").service is None


def test_a_block_in_a_list_loses_its_indent(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One\n\n- a list:\n\n  ```properties\n  a=1\n\n  b=2\n  ```\n")
    assert [(block.line, block.source, block.section) for block in blocks(str(page))] == [(6, "a=1\n\nb=2\n", "One")]


def test_without_namespaces_readers_take_turns_at_the_ports_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "_unshare", lambda: None)
    monkeypatch.setattr(network, "_is_taken", lambda port: False)
    with network.own_network() as prefix:
        assert prefix == []


def test_without_namespaces_a_port_that_is_in_use_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "_unshare", lambda: None)
    monkeypatch.setattr(network, "_is_taken", lambda port: port == 9092)
    with pytest.raises(pytest.skip.Exception, match="port 9092 of this machine is in use"), network.own_network():
        pass
