"""Settings of --override-file and --override: which one counts, and what is said of secrets."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from barnabas.tools.command_line.exit_codes import CannotRun
from barnabas.tools.running.overrides import Overrides, read_overrides


def read(*override: str, files: tuple[Path, ...] = ()) -> Overrides:
    return read_overrides(Namespace(override=list(override), override_file=[str(file) for file in files]))


def test_the_command_line_comes_after_the_files_and_a_file_after_the_one_before(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x=a\ny=a\nz=a\n")
    (tmp_path / "b").write_text("y=b\nz=b\n")
    assert read("z=c", files=(tmp_path / "a", tmp_path / "b")).properties == {"x": "a", "y": "b", "z": "c"}


def test_a_secret_in_a_file_needs_no_remark(tmp_path: Path) -> None:
    (tmp_path / "secrets").write_text("ssl.key.password=geheim\n")
    properties = read(files=(tmp_path / "secrets",))
    assert (properties.properties, properties.remarks) == ({"ssl.key.password": "geheim"}, ())


@pytest.mark.parametrize("name", ["ssl.key.password", "listener.name.outside.ssl.key.password", "sasl.jaas.config"])
def test_a_secret_on_the_command_line_gets_a_remark_that_names_the_ways_out_and_not_the_value(name: str) -> None:
    (remark,) = read(f"{name}=geheim", "broker.id=1").remarks
    assert remark.startswith(f"{name} was given by --override")
    assert "--override-file" in remark
    assert "geheim" not in remark


def test_a_variable_of_a_config_provider_is_no_secret() -> None:
    assert read("ssl.key.password=${env:KEY_PASSWORD}").remarks == ()


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="missing"):
        read(files=(tmp_path / "missing",))


@pytest.mark.parametrize("name", ["log.segmnt.bytes", "listener.name.outside.ssl.key.pasword"])
def test_a_misspelt_setting_is_refused_without_its_value(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(f"{name}=geheim\n")
    with pytest.raises(CannotRun, match="did you mean") as on_line:
        read(f"{name}=geheim")
    with pytest.raises(CannotRun, match="did you mean") as in_file:
        read(files=(tmp_path / "file",))
    assert str(on_line.value) == str(in_file.value)
    assert "geheim" not in str(on_line.value)


def test_a_name_like_no_other_may_be_that_of_a_policy_class() -> None:
    assert read("example.policy.limit=3").properties == {"example.policy.limit": "3"}
