"""Calls, their files, and the changelog."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "calls",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("call_id", sa.String(), nullable=False),
        sa.Column("tool_id", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("started_at", sa.String(), nullable=False),
        sa.Column("session_id", sa.String(), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_calls"),
    )
    op.create_index("uq_calls_call_id", "calls", ["call_id"], unique=True)
    op.create_index("ix_calls_started_at", "calls", ["started_at"])
    op.create_table(
        "call_files",
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("call_id", sa.String(), nullable=False),
        sa.Column("direction", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", "call_id", "direction", name="pk_call_files"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "changelog",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("at", sa.String(), nullable=False),
        sa.Column("project_id", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("change", sa.String(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_changelog"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_changelog_project_id_seq", "changelog", ["project_id", "seq"])


def downgrade() -> None:
    op.drop_table("changelog")
    op.drop_table("call_files")
    op.drop_table("calls")
