"""console.toml, and who has to log in."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.client.admin.config import admin_config
from barnabas.console.config import ClusterConfig, ConfigFault, read_console_file
from barnabas.console.messages.json_path import parse_path
from barnabas.console.messages.masks import Mask

FULL = """
host-names = ["console.example"]
[clusters.main]
client."bootstrap.servers" = "one:9092,two:9092"
client.security.protocol = "SASL_SSL"
metrics = ["http://one:9404"]
registry."schema.registry.url" = "http://registry:8081"
[clusters.test]
client-file = "{file}"
client."request.timeout.ms" = 5000
[[masks]]
mask = "$.card"
[[masks]]
topic = "orders*"
mask = "$.customer.name"
"""


def written(folder: Path, text: str) -> str:
    path = folder / "console.toml"
    path.write_text(text)
    return str(path)


def test_clusters_masks_and_host_names_are_read(tmp_path: Path) -> None:
    (tmp_path / "client.properties").write_text("bootstrap.servers=three:9092\n")
    clusters, masks, names = read_console_file(written(tmp_path, FULL.format(file=tmp_path / "client.properties")))
    assert [cluster.name for cluster in clusters] == ["main", "test"]
    assert clusters[0].client == {"bootstrap.servers": "one:9092,two:9092", "security.protocol": "SASL_SSL"}
    assert (clusters[0].metrics, clusters[0].registry) == (("http://one:9404",), {"schema.registry.url": "http://registry:8081"})
    assert clusters[1].client == {"bootstrap.servers": "three:9092", "request.timeout.ms": "5000"}
    assert masks == (Mask(parse_path("$.card")), Mask(parse_path("$.customer.name"), "orders*"))
    assert names == ("console.example",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "needs 1 to 50 tables"),
        ("[clusters]\n", "needs 1 to 50 tables"),
        ("x = 1", "x is not known"),
        ("[clusters.a]\n", 'add client."bootstrap.servers"'),
        ("[clusters.a]\nother = 1", "is a table with client"),
        ('[clusters."a/b"]\nclient."bootstrap.servers" = "a:1"', "a name has 1 to 60"),
        ('[clusters.".."]\nclient."bootstrap.servers" = "a:1"', "a name has 1 to 60"),
        ('[clusters.a]\nclient-file = "/nowhere/x"', "cannot be read"),
        ('[clusters.a]\nclient."bootstrap.servers" = ["a:1"]', "is a text, a number or true or false"),
        ('[clusters.a]\nclient."bootstrap.servers" = "a:1"\n[[masks]]\nmask = "card"', "begins with $"),
        ('[clusters.a]\nclient."bootstrap.servers" = "a:1"\n[[masks]]\nfields = "$.card"', "A mask has a JSON path"),
        ("[clusters", "is not TOML"),
    ],
)
def test_a_fault_names_the_entry_and_the_fix(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigFault, match="console") as fault:
        read_console_file(written(tmp_path, text))
    assert words in str(fault.value)


@pytest.mark.parametrize(
    ("client", "logs_in"),
    [
        ({}, False),
        ({"security.protocol": "SSL"}, False),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512"}, True),
        ({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}, True),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "console", "sasl.password": "x"}, False),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": "…"}, False),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}, False),
    ],
)
def test_people_log_in_where_the_cluster_wants_a_password_and_none_is_configured(client: dict[str, str], logs_in: bool) -> None:
    cluster = ClusterConfig("local", client | {"sasl.password": "secret"})
    assert cluster.logs_in is logs_in
    assert "secret" not in repr(cluster)


FILE_PROVIDER = {
    "config.providers": "file",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
}


def test_providers_resolve_the_settings_of_a_cluster_and_never_what_people_type(tmp_path: Path) -> None:
    (tmp_path / "secrets").write_text("host=one:9092\nkey=secret\n")
    cluster = ClusterConfig("local", FILE_PROVIDER | {"bootstrap.servers": f"${{file:{tmp_path}/secrets:host}}"})
    assert cluster.bootstrap == "one:9092"
    typed = f"${{file:{tmp_path}/secrets:key}}"
    settings = admin_config({**cluster.client, "sasl.username": "alice", "sasl.password": typed})
    assert settings["sasl.password"] == typed


def test_a_provider_that_cannot_read_names_the_cluster(tmp_path: Path) -> None:
    with pytest.raises(ConfigFault, match="The settings of the cluster local cannot be used: Could not read"):
        ClusterConfig("local", FILE_PROVIDER | {"bootstrap.servers": f"${{file:{tmp_path}/nothing:host}}"})
