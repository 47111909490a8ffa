"""What a node is known by outside, its file's digest or a part number, is found by an index."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_NAMED = sa.text("handle != ''")
_VALUES = {
    "sqlite": "case json_type(body, '$.{0}') when 'text' then json_extract(body, '$.{0}') end",
    "postgresql": "case jsonb_typeof(body::jsonb -> '{0}') when 'string' then body::jsonb ->> '{0}' end",
}


def upgrade() -> None:
    op.add_column("nodes", sa.Column("handle", sa.String(), nullable=False, server_default=""))
    value = _VALUES[op.get_bind().dialect.name]
    for kind, name in (("= 'component_selection'", "mpn"), ("<> 'component_selection'", "content_hash")):
        op.execute(
            f"update nodes set handle = coalesce({value.format(name)}, '') where kind {kind} and body_sha256 = '' "
            f"and body like '%\"{name}\"%'"
        )
    op.execute("update nodes set handle = '' where length(handle) > 200")
    op.execute("update nodes set handle = '?' where body_sha256 <> ''")
    op.create_index("ix_nodes_handle", "nodes", ["handle"], sqlite_where=_NAMED, postgresql_where=_NAMED)


def downgrade() -> None:
    op.drop_index("ix_nodes_handle", "nodes")
    op.drop_column("nodes", "handle")
