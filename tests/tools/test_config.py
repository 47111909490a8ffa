"""`metaforge.toml` gives full adapter configurations, and says which field is wrong."""

import pytest

from metaforge.tools.config import BadConfig, load_configs


def test_a_table_becomes_a_configuration(tmp_path) -> None:
    path = tmp_path / "metaforge.toml"
    path.write_text('[adapters.calculix]\ntransport = "http"\nhost = "127.0.0.1"\nport = 8081\n')
    config = load_configs(path)["calculix"]
    assert (config.adapter_id, config.transport, config.port, config.workspace_mount) == (
        "calculix", "http", 8081, "/workspace",
    )  # fmt: skip


@pytest.mark.parametrize(
    "text", ["[adapters.x]\nportt = 1\n", '[adapters.x]\ntransport = "pigeon"\n', "[adapters\n", "adapters = 3\n[x]\n"]
)
def test_a_bad_file_is_named_with_the_fault(tmp_path, text: str) -> None:
    path = tmp_path / "metaforge.toml"
    path.write_text(text)
    with pytest.raises(BadConfig, match=r"metaforge\.toml"):
        load_configs(path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "[adapters.x]\nport = 1\n\n[adapters.y]\nportt = 1\n",
            r"line 5: \[adapters\.y\] portt = 1: .*did you mean port",
        ),
        ('[adapters.x]\n# a port\nport = "much"\n', r"line 3: \[adapters\.x\] port = 'much'"),
        ("[adapters.x]\nport = 70000\n", r"line 2: \[adapters\.x\] port = 70000: .*65535"),
        ('[adapters.x]\nurl = "ftp://x"\n', r"line 2: \[adapters\.x\] url"),
        (
            "[adapters.x.resource_limits]\nmax_memory = 1\n",
            r"line 2: .*resource_limits\.max_memory = 1: .*max_memory_mb",
        ),
        ("[adapters.x]\nresource_limits = { max_memory_mb = 1 }\n", r"line 2: .*resource_limits\.max_memory_mb = 1"),
        ("[adapters.x]\nenvironment.A = 1\n", r"line 2: .*environment\.A = 1"),
        ("[adapters]\nx = 3\n", r"line 2: x is a table: \[adapters\.x\]"),
        ("[adapter.x]\nport = 1\n", r"line 1: adapter is unknown; write \[adapters\.<id>\]"),
        ("[adapters.x]\nport 1\n", r"line 2"),
        ("[adapters.x]\nmax_workers = 0\nidle_seconds = 0\n", r"line 2: .*max_workers = 0.*; .*line 3: .*idle_seconds"),
    ],
)
def test_the_line_and_the_field_are_named(tmp_path, text: str, told: str) -> None:
    path = tmp_path / "metaforge.toml"
    path.write_text(text)
    with pytest.raises(BadConfig, match=told):
        load_configs(path)


def test_only_limits_that_are_written_down_count(tmp_path) -> None:
    path = tmp_path / "metaforge.toml"
    path.write_text("[adapters.x.resource_limits]\nmax_memory_mb = 4096\n[adapters.y]\n")
    configs = load_configs(path)
    assert configs["x"].limits_given() == {"max_memory_mb": 4096}
    assert configs["y"].limits_given() == {}
