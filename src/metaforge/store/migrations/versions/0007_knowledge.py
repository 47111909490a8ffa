"""Documents that were read: sources, passages, their words and their vectors."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TSVECTOR

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_SEQ = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_CURRENT = sa.text("superseded_at = ''")


def upgrade() -> None:
    op.create_table(
        "knowledge_sources",
        sa.Column("source_id", sa.String(), nullable=False),
        sa.Column("project_id", sa.String(), nullable=False),
        sa.Column("source_path", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("knowledge_type", sa.String(), nullable=False),
        sa.Column("content_sha256", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("work_product_id", sa.String(), nullable=False),
        sa.Column("request_id", sa.String(), nullable=False),
        sa.Column("passage_count", sa.Integer(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("session_id", sa.String(), nullable=False),
        sa.Column("created_at", sa.String(), nullable=False),
        sa.Column("superseded_at", sa.String(), nullable=False),
        sa.Column("superseded_by", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("source_id", name="pk_knowledge_sources"),
    )
    op.create_index(
        "uq_knowledge_sources_project_id_source_path_revision",
        "knowledge_sources",
        ["project_id", "source_path", "revision"],
        unique=True,
    )
    op.create_index(
        "uq_knowledge_sources_current",
        "knowledge_sources",
        ["project_id", "source_path"],
        unique=True,
        sqlite_where=_CURRENT,
        postgresql_where=_CURRENT,
    )
    op.create_table(
        "knowledge_passages",
        sa.Column("passage_id", _SEQ, nullable=False),
        sa.Column("source_id", sa.String(), nullable=False),
        sa.Column("project_id", sa.String(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("heading", sa.Text(), nullable=False),
        sa.Column("page", sa.Integer(), nullable=True),
        sa.Column("line", sa.Integer(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("context", sa.Text(), nullable=False),
        sa.Column("scope", sa.String(), nullable=False),
        sa.Column("terms", sa.Text().with_variant(TSVECTOR(), "postgresql"), nullable=False),
        sa.ForeignKeyConstraint(["source_id"], ["knowledge_sources.source_id"], name="fk_knowledge_passages_source_id"),
        sa.PrimaryKeyConstraint("passage_id", name="pk_knowledge_passages"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "uq_knowledge_passages_source_id_ordinal", "knowledge_passages", ["source_id", "ordinal"], unique=True
    )
    op.create_table(
        "knowledge_vectors",
        sa.Column("passage_id", _SEQ, autoincrement=False, nullable=False),
        sa.Column("project_id", sa.String(), nullable=False),
        sa.Column("model_id", sa.String(), nullable=False),
        sa.Column("dim", sa.Integer(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["passage_id"], ["knowledge_passages.passage_id"], name="fk_knowledge_vectors_passage_id"
        ),
        sa.PrimaryKeyConstraint("passage_id", name="pk_knowledge_vectors"),
    )
    op.create_index(
        "ix_knowledge_vectors_project_id_model_id", "knowledge_vectors", ["project_id", "model_id", "passage_id"]
    )
    op.create_table(
        "knowledge_state",
        sa.Column("project_id", sa.String(), nullable=False),
        sa.Column("seq", _SEQ, nullable=False),
        sa.Column("reload_seq", _SEQ, nullable=False),
        sa.PrimaryKeyConstraint("project_id", name="pk_knowledge_state"),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.create_index("ix_knowledge_passages_terms", "knowledge_passages", ["terms"], postgresql_using="gin")
    else:
        # Words are made in code, alike for both databases; here they are only kept apart at spaces.
        op.execute(
            "CREATE VIRTUAL TABLE knowledge_words USING fts5(scope, terms, content='knowledge_passages', "
            "content_rowid='passage_id', tokenize=\"unicode61 remove_diacritics 0 tokenchars '.-_/+%#'\")"
        )


def downgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        op.execute("DROP TABLE knowledge_words")
    for name in ("knowledge_state", "knowledge_vectors", "knowledge_passages", "knowledge_sources"):
        op.drop_table(name)
