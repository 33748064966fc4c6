from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.config_def import InvalidConfig
from barnabas.config_providers import resolve_providers

KAFKA = "org.apache.kafka.common.config.provider"
ALL = {
    "config.providers": "file, dir,env",
    "config.providers.file.class": f"{KAFKA}.FileConfigProvider",
    "config.providers.dir.class": f"{KAFKA}.DirectoryConfigProvider",
    "config.providers.env.class": f"{KAFKA}.EnvVarConfigProvider",
}


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    (tmp_path / "secrets.properties").write_text("password = p\\u00e4ss\nuser=alice\n", "utf-8")
    (tmp_path / "mounted").mkdir()
    (tmp_path / "mounted" / "password").write_text("with\nnewline\n")
    (tmp_path / "mounted" / "deeper").mkdir()
    return tmp_path


def resolved(text: str, **more: str) -> str:
    extra = {f"config.providers.{name.replace('_', '.')}": value for name, value in more.items()}
    return resolve_providers(ALL | extra | {"setting": text}, {"HOME_TOWN": "Ulm", "SECRET": "x"})["setting"]


def test_a_value_comes_from_a_file(secrets: Path) -> None:
    assert resolved(f"${{file:{secrets}/secrets.properties:password}}") == "päss"


def test_a_value_comes_from_a_directory_as_it_stands_in_its_file(secrets: Path) -> None:
    assert resolved(f"${{dir:{secrets}/mounted:password}}") == "with\nnewline\n"


def test_a_value_comes_from_the_environment() -> None:
    assert resolved("${env:HOME_TOWN}") == "Ulm"


def test_several_variables_stand_in_one_value(secrets: Path) -> None:
    assert resolved(f"a=${{file:{secrets}/secrets.properties:user}};b=${{env:HOME_TOWN}}.") == "a=alice;b=Ulm."


@pytest.mark.parametrize("text", ["${env:NO_SUCH}", "${vault:a:b}", "$env:HOME_TOWN", "${HOME_TOWN}", "${file:}", "${dir:/no/such:x}"])
def test_what_is_not_found_stays_as_it_stands(text: str) -> None:
    assert resolved(text) == text


def test_what_a_variable_gives_is_not_resolved_again(secrets: Path) -> None:
    (secrets / "mounted" / "loop").write_text("${env:HOME_TOWN}")
    assert resolved(f"${{dir:{secrets}/mounted:loop}}") == "${env:HOME_TOWN}"


def test_without_providers_nothing_is_replaced() -> None:
    assert resolve_providers({"setting": "${env:HOME_TOWN}"}, {"HOME_TOWN": "Ulm"}) == {"setting": "${env:HOME_TOWN}"}


@pytest.mark.parametrize("key", ["deeper", "../secrets.properties", "", ".", "no.such"])
def test_a_key_of_a_directory_is_a_file_in_it_and_nothing_else(secrets: Path, key: str) -> None:
    text = f"${{dir:{secrets}/mounted:{key}}}"
    assert resolved(text) == text


def test_only_allowed_paths_are_read(secrets: Path) -> None:
    allowed = f"{secrets}/mounted"
    assert resolved(f"${{dir:{secrets}/mounted:password}}", dir_param_allowed_paths=allowed) == "with\nnewline\n"
    for path in (f"{secrets}/secrets.properties", f"{secrets}/mounted/../secrets.properties"):
        text = f"${{file:{path}:user}}"
        assert resolved(text, file_param_allowed_paths=allowed) == text


@pytest.mark.parametrize(("path", "message"), [("relative", "Path relative is not absolute"), ("/no/such", "Path /no/such does not exist")])
def test_a_path_that_cannot_be_allowed_is_refused(path: str, message: str) -> None:
    with pytest.raises(InvalidConfig, match=message):
        resolved("x", file_param_allowed_paths=path)


def test_only_allowed_variables_of_the_environment_are_read() -> None:
    assert resolved("${env:HOME_TOWN}${env:SECRET}", env_param_allowlist_pattern="HOME_.*") == "Ulm${env:SECRET}"


def test_the_environment_has_no_paths() -> None:
    with pytest.raises(InvalidConfig, match="Path is not supported for EnvVarConfigProvider, invalid value 'a'"):
        resolved("${env:a:HOME_TOWN}")


def test_a_file_that_cannot_be_read_is_refused(secrets: Path) -> None:
    with pytest.raises(InvalidConfig, match=f"Could not read properties from file {secrets}/none"):
        resolved(f"${{file:{secrets}/none:user}}")


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"config.providers": "a"}, "config.providers.a.class"),
        ({"config.providers": "a", "config.providers.a.class": "com.example.VaultProvider"}, "com.example.VaultProvider"),
        (
            {
                "config.providers": "a",
                "config.providers.a.class": "EnvVarConfigProvider",
                "config.providers.a.param.allowlist.pattern": "(",
            },
            "allowlist",
        ),
    ],
)
def test_a_provider_that_is_none_is_refused(properties: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidConfig, match=message):
        resolve_providers(properties, {})


def test_a_broker_starts_with_the_values_found() -> None:
    properties = {
        "config.providers": "env",
        "config.providers.env.class": "EnvVarConfigProvider",
        "node.id": "${env:NODE}",
        "listeners": "PLAINTEXT://:${env:PORT}",
    }
    config = BrokerConfig.from_properties(resolve_providers(properties, {"NODE": "7", "PORT": "9999"}))
    assert (config.broker_id, config.listeners[0].port, config.unknown) == (7, 9999, [])
