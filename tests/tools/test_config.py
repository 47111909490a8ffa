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
