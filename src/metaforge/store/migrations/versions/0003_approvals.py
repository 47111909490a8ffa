"""The approval ledger, which nothing can change, and the results of writes that carried a key."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_SEQ = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_OPEN = sa.text("state in ('awaiting_approval', 'approved', 'running')")
_REFUSAL = "approval_events is append-only"
_REFUSE_SQLITE = f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"


def upgrade() -> None:
    op.create_table(
        "approval_events",
        sa.Column("seq", _SEQ, autoincrement=False, nullable=False),
        sa.Column("approval_id", sa.String(), nullable=False),
        sa.Column("event", sa.String(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("at", sa.String(), nullable=False),
        sa.Column("prev_hash", sa.String(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_approval_events"),
    )
    op.create_index("ix_approval_events_approval_id_seq", "approval_events", ["approval_id", "seq"])
    op.create_table(
        "approvals",
        sa.Column("approval_id", sa.String(), nullable=False),
        sa.Column("first_seq", _SEQ, nullable=False),
        sa.Column("last_seq", _SEQ, nullable=False),
        sa.Column("tool_id", sa.String(), nullable=False),
        sa.Column("project_id", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("on_dashboard", sa.Integer(), nullable=False),
        sa.Column("holder", sa.String(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("decision", sa.Text(), nullable=False),
        sa.Column("ended_reason", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.String(), nullable=False),
        sa.Column("updated_at", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("approval_id", name="pk_approvals"),
    )
    op.create_index("uq_approvals_first_seq", "approvals", ["first_seq"], unique=True)
    op.create_index("ix_approvals_project_id_first_seq", "approvals", ["project_id", "first_seq"])
    op.create_index(
        "ix_approvals_open", "approvals", ["state", "first_seq"], sqlite_where=_OPEN, postgresql_where=_OPEN
    )
    op.create_table(
        "idempotent_writes",
        sa.Column("actor_id", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("call_id", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("holder", sa.String(), nullable=False),
        sa.Column("result", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("actor_id", "key", name="pk_idempotent_writes"),
    )
    op.create_index("ix_idempotent_writes_updated_at", "idempotent_writes", ["updated_at"])
    for statement in _guards():
        op.execute(statement)


def _guards() -> tuple[str, ...]:
    """Return what makes the database itself refuse to change or remove an event."""
    if op.get_bind().dialect.name == "sqlite":
        return (
            f"CREATE TRIGGER approval_events_no_update BEFORE UPDATE ON approval_events {_REFUSE_SQLITE}",
            f"CREATE TRIGGER approval_events_no_delete BEFORE DELETE ON approval_events {_REFUSE_SQLITE}",
            # `insert or replace` removes a row without asking the trigger above.
            "CREATE TRIGGER approval_events_in_order BEFORE INSERT ON approval_events "
            f"WHEN NEW.seq <> (SELECT coalesce(max(seq), 0) + 1 FROM approval_events) {_REFUSE_SQLITE}",
        )
    return (
        "CREATE FUNCTION refuse_change_of_approval_events() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$",
        "CREATE TRIGGER approval_events_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON approval_events "
        "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_approval_events()",
    )


def downgrade() -> None:
    op.drop_table("idempotent_writes")
    op.drop_table("approvals")
    op.drop_table("approval_events")
    if op.get_bind().dialect.name != "sqlite":
        op.execute("DROP FUNCTION refuse_change_of_approval_events()")
