"""Projects, runs, items, nodes, links, sessions and baselines; the changelog in its present form."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_SEQ = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.drop_table("changelog")  # nothing has written to it yet
    op.create_table(
        "changelog",
        sa.Column("seq", _SEQ, nullable=False),
        sa.Column("at", sa.String(), nullable=False),
        sa.Column("project_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("ref", sa.String(), nullable=False),
        sa.Column("node_id", sa.String(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_changelog"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_changelog_project_id_seq", "changelog", ["project_id", "seq"])
    op.create_table(
        "projects",
        sa.Column("project_id", sa.String(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("created_at", sa.String(), nullable=False),
        sa.Column("updated_at", sa.String(), nullable=False),
        sa.Column("deleted_at", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", name="pk_projects"),
    )
    op.create_index("ix_projects_created_at", "projects", ["created_at"])
    op.create_table(
        "runs",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("project_id", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("flow_version", sa.String(), nullable=False),
        sa.Column("flow_approved", sa.Integer(), nullable=False),
        sa.Column("phase", sa.String(), nullable=False),
        sa.Column("gate", sa.String(), nullable=False),
        sa.Column("created_at", sa.String(), nullable=False),
        sa.Column("updated_at", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", name="pk_runs"),
    )
    op.create_table(
        "items",
        sa.Column("item_id", sa.String(), nullable=False),
        sa.Column("project_id", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("family", sa.String(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("match_key", sa.String(), nullable=False),
        sa.Column("head_revision", sa.Integer(), nullable=True),
        sa.Column("head_node_id", sa.String(), nullable=True),
        sa.Column("last_revision", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.String(), nullable=False),
        sa.Column("updated_at", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("item_id", name="pk_items"),
    )
    op.create_index("ix_items_project_id_family_match_key", "items", ["project_id", "family", "match_key"])
    op.create_index("uq_items_key_project_id", "items", ["key", "project_id"], unique=True)
    op.create_table(
        "nodes",
        sa.Column("node_id", sa.String(), nullable=False),
        sa.Column("project_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("body_sha256", sa.String(), nullable=False),
        sa.Column("item_id", sa.String(), nullable=True),
        sa.Column("item_key", sa.String(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=True),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("change_set", sa.String(), nullable=False),
        sa.Column("phase", sa.String(), nullable=False),
        sa.Column("gate", sa.String(), nullable=False),
        sa.Column("change_reason", sa.Text(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("prior_node_id", sa.String(), nullable=False),
        sa.Column("decided_by", sa.String(), nullable=False),
        sa.Column("approved_at", sa.String(), nullable=False),
        sa.Column("status_reason", sa.Text(), nullable=False),
        sa.Column("closed_at", sa.String(), nullable=False),
        sa.Column("adopted", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["item_id"], ["items.item_id"], name="fk_nodes_item_id"),
        sa.PrimaryKeyConstraint("node_id", name="pk_nodes"),
    )
    op.create_index(
        "ix_nodes_change_set",
        "nodes",
        ["change_set"],
        sqlite_where=sa.text("change_set != ''"),
        postgresql_where=sa.text("change_set != ''"),
    )
    op.create_index("ix_nodes_project_id_kind", "nodes", ["project_id", "kind"])
    op.create_index("uq_nodes_item_id_revision", "nodes", ["item_id", "revision"], unique=True)
    op.create_table(
        "drafts",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("item_id", sa.String(), nullable=False),
        sa.Column("node_id", sa.String(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("base_revision", sa.Integer(), nullable=True),
        sa.Column("base_node_id", sa.String(), nullable=True),
        sa.Column("phase", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["item_id"], ["items.item_id"], name="fk_drafts_item_id"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.node_id"], name="fk_drafts_node_id"),
        sa.PrimaryKeyConstraint("run_id", "item_id", name="pk_drafts"),
    )
    op.create_index("ix_drafts_item_id", "drafts", ["item_id"])
    op.create_table(
        "links",
        sa.Column("link_id", sa.String(), nullable=False),
        sa.Column("project_id", sa.String(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("source_node_id", sa.String(), nullable=False),
        sa.Column("source_subject", sa.String(), nullable=False),
        sa.Column("source_revision", sa.Integer(), nullable=True),
        sa.Column("target_node_id", sa.String(), nullable=False),
        sa.Column("target_subject", sa.String(), nullable=False),
        sa.Column("target_revision", sa.Integer(), nullable=True),
        sa.Column("change_set", sa.String(), nullable=False),
        sa.Column("reviewed_revision", sa.Integer(), nullable=True),
        sa.Column("reviewed_by", sa.String(), nullable=False),
        sa.Column("reviewed_at", sa.String(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("created_at", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["source_node_id"], ["nodes.node_id"], name="fk_links_source_node_id"),
        sa.ForeignKeyConstraint(["target_node_id"], ["nodes.node_id"], name="fk_links_target_node_id"),
        sa.PrimaryKeyConstraint("link_id", name="pk_links"),
    )
    ends = {"outgoing": ("source_subject", "target_subject"), "incoming": ("target_subject", "source_subject")}
    for way, (start, end) in ends.items():
        columns = [start, "type", end, "change_set", "source_revision", "source_node_id"]
        op.create_index(f"ix_links_{way}", "links", columns)
    op.create_index("ix_links_project_id", "links", ["project_id"])
    op.create_index("ix_links_source_node_id", "links", ["source_node_id"])
    op.create_index("ix_links_target_node_id", "links", ["target_node_id"])
    op.create_table(
        "sessions",
        sa.Column("session_id", sa.String(), nullable=False),
        sa.Column("project_id", sa.String(), nullable=False),
        sa.Column("client_session_id", sa.String(), nullable=False),
        sa.Column("agent_code", sa.String(), nullable=False),
        sa.Column("task_type", sa.String(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("implicit", sa.Integer(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("client_name", sa.String(), nullable=False),
        sa.Column("event_count", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.String(), nullable=False),
        sa.Column("last_event_at", sa.String(), nullable=False),
        sa.Column("completed_at", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("session_id", name="pk_sessions"),
    )
    op.create_index("ix_sessions_client_session_id", "sessions", ["client_session_id"])
    op.create_index("ix_sessions_project_id", "sessions", ["project_id"])
    op.create_table(
        "session_events",
        sa.Column("session_id", sa.String(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("event_id", sa.String(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("call_id", sa.String(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("at", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.session_id"], name="fk_session_events_session_id"),
        sa.PrimaryKeyConstraint("session_id", "seq", name="pk_session_events"),
    )
    op.create_index("ix_session_events_call_id", "session_events", ["call_id"])
    op.create_index("uq_session_events_event_id", "session_events", ["event_id"], unique=True)
    op.create_table(
        "baselines",
        sa.Column("baseline_id", sa.String(), nullable=False),
        sa.Column("project_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("seq", _SEQ, nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("created_at", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("baseline_id", name="pk_baselines"),
    )
    op.create_index("uq_baselines_project_id_name", "baselines", ["project_id", "name"], unique=True)
    op.create_table(
        "baseline_entries",
        sa.Column("baseline_id", sa.String(), nullable=False),
        sa.Column("item_key", sa.String(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("node_id", sa.String(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["baseline_id"], ["baselines.baseline_id"], name="fk_baseline_entries_baseline_id"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.node_id"], name="fk_baseline_entries_node_id"),
        sa.PrimaryKeyConstraint("baseline_id", "item_key", name="pk_baseline_entries"),
    )


def downgrade() -> None:
    for name in (
        "baseline_entries",
        "baselines",
        "session_events",
        "sessions",
        "links",
        "drafts",
        "nodes",
        "items",
        "runs",
        "projects",
        "changelog",
    ):
        op.drop_table(name)
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
