"""A call is an event of its session by its own row, and no longer by a second one."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_IN_A_SESSION = sa.text("work_session_id != ''")


def upgrade() -> None:
    op.add_column("calls", sa.Column("work_session_id", sa.String(), nullable=False, server_default=""))
    op.add_column("calls", sa.Column("event_seq", sa.Integer(), nullable=False, server_default="0"))
    op.execute(
        """
        update calls set
            work_session_id = (select session_id from session_events where event_id = calls.call_id),
            event_seq = (select seq from session_events where event_id = calls.call_id)
        where exists (select 1 from session_events where event_id = calls.call_id)
        """
    )
    op.execute("delete from session_events where event_id in (select call_id from calls)")
    op.create_index(
        "ix_calls_work_session_id_event_seq",
        "calls",
        ["work_session_id", "event_seq"],
        sqlite_where=_IN_A_SESSION,
        postgresql_where=_IN_A_SESSION,
    )


def downgrade() -> None:
    op.drop_index("ix_calls_work_session_id_event_seq", "calls")
    op.drop_column("calls", "event_seq")
    op.drop_column("calls", "work_session_id")
