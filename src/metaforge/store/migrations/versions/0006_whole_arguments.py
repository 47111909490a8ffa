"""What everybody may see of a held call lies apart from what only the call itself needs."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("approvals", sa.Column("whole", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    op.drop_column("approvals", "whole")
