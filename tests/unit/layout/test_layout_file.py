"""How a data directory knows for how many brokers it was made, and what is refused."""

from __future__ import annotations

import pytest

from barnabas.layout.errors import WrongLayout
from barnabas.layout.layout import Layout
from barnabas.layout.layout_file import LAYOUT_FILE, LayoutFile, find_layout, require_layout
from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.disk.files import AnyFiles
from tests.unit.storage.logs import write_file

DATA = "/data"


@pytest.fixture
def files() -> SimulatedFiles:
    disk = SimulatedFiles()
    disk.make_dirs(DATA)
    return disk


def use(files: AnyFiles, *directories: str) -> None:
    """As brokers do that have registered."""
    for directory in directories:
        files.make_dirs(f"{DATA}/{directory}")
        write_file(files, f"{DATA}/{directory}/meta.properties", b"version=0\n")


def test_a_new_directory_is_for_any_number(files: SimulatedFiles) -> None:
    assert find_layout(files, DATA) is None and find_layout(files, "/missing") is None
    require_layout(files, DATA, Layout(3))


def test_a_directory_with_an_identity_of_its_own_is_of_one_broker(files: SimulatedFiles) -> None:
    use(files, "")
    assert find_layout(files, DATA) == Layout(1)


def test_the_file_says_how_many_even_if_not_all_of_them_have_started(files: SimulatedFiles) -> None:
    use(files, "broker-1")
    LayoutFile(files, DATA).write(Layout(3))
    assert find_layout(files, DATA) == Layout(3)


def test_without_the_file_the_directories_are_counted(files: SimulatedFiles) -> None:
    use(files, "broker-1", "broker-10", "broker-2")
    assert find_layout(files, DATA) == Layout(10)


def test_a_start_that_failed_before_any_broker_was_registered_decides_nothing(files: SimulatedFiles) -> None:
    files.make_dirs(f"{DATA}/broker-1")
    LayoutFile(files, DATA).write(Layout(3))
    assert find_layout(files, DATA) is None


def test_the_log_of_a_topic_named_broker_is_no_broker(files: SimulatedFiles) -> None:
    use(files, "")
    files.make_dirs(f"{DATA}/broker-1")
    assert find_layout(files, DATA) == Layout(1)


@pytest.mark.parametrize(("used", "wanted"), [((""), 3), (("broker-1", "broker-2", "broker-3"), 1), (("broker-1", "broker-2"), 3)])
def test_another_number_is_refused_with_the_two_ways_out(files: SimulatedFiles, used: tuple[str, ...], wanted: int) -> None:
    use(files, *(used or ("",)))
    with pytest.raises(WrongLayout, match=f"another directory with --data.*barnabas convert --data /data --brokers {wanted}"):
        require_layout(files, DATA, Layout(wanted))


def test_logs_of_two_layouts_beside_each_other_are_refused(files: SimulatedFiles) -> None:
    use(files, "", "broker-1", "broker-2")
    with pytest.raises(WrongLayout, match="in broker-1, broker-2, those of several"):
        find_layout(files, DATA)


def test_a_conversion_that_was_interrupted_is_named(files: SimulatedFiles) -> None:
    use(files, "")
    files.make_dirs(f"{DATA}/barnabas-conversion")
    write_file(files, f"{DATA}/barnabas-conversion/journal.json", b"{}")
    with pytest.raises(WrongLayout, match="was interrupted; finish it with: barnabas convert"):
        require_layout(files, DATA, Layout(1))


@pytest.mark.parametrize(
    "content", [b"", b"version=1\n", b"version=1\nbrokers=1\n", b"version=1\nbrokers=x\n", b"version=2\nbrokers=3\n", b"\xff"]
)
def test_a_file_that_cannot_be_read_is_not_guessed_at(files: SimulatedFiles, content: bytes) -> None:
    use(files, "broker-1")
    write_file(files, f"{DATA}/{LAYOUT_FILE}", content)
    with pytest.raises(WrongLayout, match=r"layout\.properties cannot be read"):
        find_layout(files, DATA)
