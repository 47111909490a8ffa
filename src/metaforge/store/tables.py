"""The tables of the store, in SQLAlchemy's words. `schema.sql` is what the migrations make of them on SQLite.

Times are ISO 8601 in UTC, JSON is text, truth values are 0 and 1, and an absent name is an empty text: what holds on
SQLite and on Postgres alike. NULL stands where a number or a reference is absent.
"""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, LargeBinary, MetaData, String, Table, Text, text
from sqlalchemy.dialects.postgresql import TSVECTOR

METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    }
)


_SEQ = BigInteger().with_variant(Integer(), "sqlite")
_IN_A_RUN = text("change_set != ''")
_IN_A_SESSION = text("work_session_id != ''")
_NAMED = text("handle != ''")
_CURRENT = text("superseded_at = ''")
_OPEN = text("state in ('awaiting_approval', 'approved', 'running')")


def _text(name: str, *more: ForeignKey, nullable: bool = False) -> Column[str]:
    return Column(name, String, *more, nullable=nullable)


CALLS = Table(
    "calls",
    METADATA,
    Column("seq", Integer, primary_key=True),
    _text("call_id"),
    _text("tool_id"),
    _text("status"),
    _text("started_at"),
    _text("session_id"),
    Column("record", Text, nullable=False),
    Column("work_session_id", String, nullable=False, server_default=""),
    Column("event_seq", Integer, nullable=False, server_default="0"),
    Index("uq_calls_call_id", "call_id", unique=True),
    Index("ix_calls_started_at", "started_at"),
    Index(
        "ix_calls_work_session_id_event_seq",
        "work_session_id",
        "event_seq",
        sqlite_where=_IN_A_SESSION,
        postgresql_where=_IN_A_SESSION,
    ),
)
"""`record` is the whole call record as JSON; the other columns are what it is looked up by. A call is an event of its
work session, numbered `event_seq` there beside those of `session_events`."""

CALL_FILES = Table(
    "call_files",
    METADATA,
    Column("sha256", String, primary_key=True),
    Column("call_id", String, primary_key=True),
    Column("direction", String, primary_key=True),
    sqlite_with_rowid=False,
)
"""Which calls read (`input`) or produced (`artefact`) which content."""

CHANGELOG = Table(
    "changelog",
    METADATA,
    Column("seq", _SEQ, primary_key=True),
    _text("at"),
    _text("project_id"),
    _text("kind"),
    _text("ref"),
    _text("node_id"),
    Column("body", Text, nullable=False),
    _text("author"),
    _text("run_id"),
    Index("ix_changelog_project_id_seq", "project_id", "seq"),
    sqlite_autoincrement=True,
)
"""One row for every write to the design record, in the same transaction; readers follow it by `seq`.

Within a project `seq` grows in the order of commits. `kind` is one of `metaforge.twin.model.ChangeKind`; `ref` is
`KEY@n`, a link id, a run id, or empty; `body` tells what a follower needs beside the node itself.
"""

PROJECTS = Table(
    "projects",
    METADATA,
    Column("project_id", String, primary_key=True),
    Column("name", Text, nullable=False),
    Column("description", Text, nullable=False),
    _text("status"),
    _text("author"),
    _text("created_at"),
    _text("updated_at"),
    _text("deleted_at"),
    Index("ix_projects_created_at", "created_at"),
)
"""A deleted project keeps its rows; `deleted_at` hides it."""

RUNS = Table(
    "runs",
    METADATA,
    Column("run_id", String, primary_key=True),
    _text("project_id"),
    _text("state"),
    _text("flow_version"),
    Column("flow_approved", Integer, nullable=False),
    _text("phase"),
    _text("gate"),
    _text("created_at"),
    _text("updated_at"),
)
"""Design-flow runs as the twin needs them; `state` is running while it accepts drafts."""

ITEMS = Table(
    "items",
    METADATA,
    Column("item_id", String, primary_key=True),
    _text("project_id"),
    _text("key"),
    _text("kind"),
    _text("family"),
    Column("name", Text, nullable=False),
    _text("match_key"),
    Column("head_revision", Integer),
    _text("head_node_id", nullable=True),
    Column("last_revision", Integer, nullable=False),
    _text("created_at"),
    _text("updated_at"),
    Index("uq_items_key_project_id", "key", "project_id", unique=True),
    Index("ix_items_project_id_family_match_key", "project_id", "family", "match_key"),
)
"""What keeps its identity while it is revised. `head_*` is the revision everybody reads, NULL while there are only
drafts; `last_revision` is the highest number ever given out."""

NODES = Table(
    "nodes",
    METADATA,
    Column("node_id", String, primary_key=True),
    _text("project_id"),
    _text("kind"),
    Column("name", Text, nullable=False),
    Column("body", Text, nullable=False),
    _text("body_sha256"),
    _text("item_id", ForeignKey("items.item_id"), nullable=True),
    _text("item_key"),
    Column("revision", Integer),
    _text("status"),
    _text("change_set"),
    _text("phase"),
    _text("gate"),
    Column("change_reason", Text, nullable=False),
    _text("author"),
    _text("run_id"),
    _text("prior_node_id"),
    _text("decided_by"),
    _text("approved_at"),
    Column("status_reason", Text, nullable=False),
    _text("closed_at"),
    Column("adopted", Integer, nullable=False),
    _text("created_at"),
    Column("handle", String, nullable=False, server_default=""),
    Index("uq_nodes_item_id_revision", "item_id", "revision", unique=True),
    Index("ix_nodes_project_id_kind", "project_id", "kind"),
    Index("ix_nodes_change_set", "change_set", sqlite_where=_IN_A_RUN, postgresql_where=_IN_A_RUN),
    Index("ix_nodes_handle", "handle", sqlite_where=_NAMED, postgresql_where=_NAMED),
)
"""Every node of the design record: a revision of an item (`item_id`, `item_key`, `revision`), or a record, which has
none of these. `body` is JSON; a long one is the content `body_sha256` instead, and `body` is empty. `handle` is what
the body is looked up by (`metaforge.twin.search.handle_of`), `?` where only a long body would tell."""

DRAFTS = Table(
    "drafts",
    METADATA,
    Column("run_id", String, primary_key=True),
    Column("item_id", String, ForeignKey("items.item_id"), primary_key=True),
    _text("node_id", ForeignKey("nodes.node_id")),
    Column("revision", Integer, nullable=False),
    Column("base_revision", Integer),
    _text("base_node_id", nullable=True),
    _text("phase"),
    Index("ix_drafts_item_id", "item_id"),
)
"""The open change set of each run: the latest draft of each item in it, and the head it was made from."""

LINKS = Table(
    "links",
    METADATA,
    Column("link_id", String, primary_key=True),
    _text("project_id"),
    _text("type"),
    _text("source_node_id", ForeignKey("nodes.node_id")),
    _text("source_subject"),
    Column("source_revision", Integer),
    _text("target_node_id", ForeignKey("nodes.node_id")),
    _text("target_subject"),
    Column("target_revision", Integer),
    _text("change_set"),
    Column("reviewed_revision", Integer),
    _text("reviewed_by"),
    _text("reviewed_at"),
    Column("body", Text, nullable=False),
    _text("author"),
    _text("run_id"),
    _text("created_at"),
    # These hold all that a walk along links asks for, so that it reads no table.
    Index(
        "ix_links_outgoing",
        *("source_subject", "type", "target_subject", "change_set", "source_revision", "source_node_id"),
    ),
    Index(
        "ix_links_incoming",
        *("target_subject", "type", "source_subject", "change_set", "source_revision", "source_node_id"),
    ),
    Index("ix_links_source_node_id", "source_node_id"),
    Index("ix_links_target_node_id", "target_node_id"),
    Index("ix_links_project_id", "project_id"),
)
"""Typed links from a node to the exact node they were made against.

A `*_subject` is the item's id where the node is a revision of one, else the node's id: what impact is followed along.
`*_revision` is NULL for records. `change_set` is the run while the source is its draft, and stays when the draft is
closed; it is empty once everybody may see the link. A link is suspect while `target_revision` and
`reviewed_revision` are both below the head of the target.
"""

SESSIONS = Table(
    "sessions",
    METADATA,
    Column("session_id", String, primary_key=True),
    _text("project_id"),
    _text("client_session_id"),
    _text("agent_code"),
    _text("task_type"),
    Column("title", Text, nullable=False),
    _text("status"),
    Column("summary", Text, nullable=False),
    Column("implicit", Integer, nullable=False),
    _text("author"),
    _text("client_name"),
    Column("event_count", Integer, nullable=False),
    _text("started_at"),
    _text("last_event_at"),
    _text("completed_at"),
    Index("ix_sessions_client_session_id", "client_session_id"),
    Index("ix_sessions_project_id", "project_id"),
)

SESSION_EVENTS = Table(
    "session_events",
    METADATA,
    Column("session_id", String, ForeignKey("sessions.session_id"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    _text("event_id"),
    _text("type"),
    Column("message", Text, nullable=False),
    Column("data", Text, nullable=False),
    _text("call_id"),
    _text("author"),
    _text("at"),
    Index("uq_session_events_event_id", "event_id", unique=True),
    Index("ix_session_events_call_id", "call_id"),
)

BASELINES = Table(
    "baselines",
    METADATA,
    Column("baseline_id", String, primary_key=True),
    _text("project_id"),
    Column("name", String, nullable=False),
    Column("note", Text, nullable=False),
    Column("seq", _SEQ, nullable=False),
    _text("digest"),
    _text("author"),
    _text("created_at"),
    Index("uq_baselines_project_id_name", "project_id", "name", unique=True),
)
"""A named state of a project: the changelog's `seq`, and a digest over its entries. Never changed."""

BASELINE_ENTRIES = Table(
    "baseline_entries",
    METADATA,
    Column("baseline_id", String, ForeignKey("baselines.baseline_id"), primary_key=True),
    Column("item_key", String, primary_key=True),
    Column("revision", Integer, nullable=False),
    _text("node_id", ForeignKey("nodes.node_id")),
    Column("name", Text, nullable=False),
)

APPROVAL_EVENTS = Table(
    "approval_events",
    METADATA,
    Column("seq", _SEQ, primary_key=True, autoincrement=False),
    _text("approval_id"),
    _text("event"),
    Column("body", Text, nullable=False),
    _text("at"),
    _text("prev_hash"),
    _text("hash"),
    Index("ix_approval_events_approval_id_seq", "approval_id", "seq"),
)
"""The ledger: one row for everything that happened to an approval, numbered without gaps, each with the hash of the
one before. Triggers refuse every change of a row. `body` is canonical JSON without secrets."""

APPROVALS = Table(
    "approvals",
    METADATA,
    Column("approval_id", String, primary_key=True),
    Column("first_seq", _SEQ, nullable=False),
    Column("last_seq", _SEQ, nullable=False),
    _text("tool_id"),
    _text("project_id"),
    _text("state"),
    Column("on_dashboard", Integer, nullable=False),
    _text("holder"),
    Column("request", Text, nullable=False),
    Column("decision", Text, nullable=False),
    Column("ended_reason", Text, nullable=False),
    _text("expires_at"),
    _text("updated_at"),
    Column("whole", Text, nullable=False, server_default=""),
    Index("uq_approvals_first_seq", "first_seq", unique=True),
    Index("ix_approvals_project_id_first_seq", "project_id", "first_seq"),
    Index("ix_approvals_open", "state", "first_seq", sqlite_where=_OPEN, postgresql_where=_OPEN),
)
"""What the events amount to, written with them. `request` and `decision` are JSON as everybody may see it; `whole`
keeps arguments with secrets and in full length, only until the approval ends. `holder` is the process that waits for
it or runs it."""

IDEMPOTENT_WRITES = Table(
    "idempotent_writes",
    METADATA,
    Column("actor_id", String, primary_key=True),
    Column("key", String, primary_key=True),
    _text("digest"),
    _text("call_id"),
    _text("state"),
    _text("holder"),
    Column("result", Text, nullable=False),
    _text("updated_at"),
    Index("ix_idempotent_writes_updated_at", "updated_at"),
)
"""Writes that carried a key of their caller's, and their results. `state` is waiting, running or done."""

KNOWLEDGE_SOURCES = Table(
    "knowledge_sources",
    METADATA,
    Column("source_id", String, primary_key=True),
    _text("project_id"),
    Column("source_path", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    _text("knowledge_type"),
    _text("content_sha256"),
    _text("digest"),
    Column("metadata", Text, nullable=False),
    _text("work_product_id"),
    _text("request_id"),
    Column("passage_count", Integer, nullable=False),
    _text("author"),
    _text("session_id"),
    _text("created_at"),
    _text("superseded_at"),
    _text("superseded_by"),
    Index("uq_knowledge_sources_project_id_source_path_revision", "project_id", "source_path", "revision", unique=True),
    Index(
        "uq_knowledge_sources_current",
        *("project_id", "source_path"),
        unique=True,
        sqlite_where=_CURRENT,
        postgresql_where=_CURRENT,
    ),
)
"""One revision of a document that was read. `digest` tells whether reading it again would change anything;
`superseded_at` is empty on the revision that searches find unless history is asked for."""

KNOWLEDGE_PASSAGES = Table(
    "knowledge_passages",
    METADATA,
    Column("passage_id", _SEQ, primary_key=True),
    _text("source_id", ForeignKey("knowledge_sources.source_id")),
    _text("project_id"),
    Column("ordinal", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("heading", Text, nullable=False),
    Column("page", Integer),
    Column("line", Integer),
    _text("kind"),
    Column("context", Text, nullable=False),
    _text("scope"),
    Column("terms", Text().with_variant(TSVECTOR(), "postgresql"), nullable=False),
    Index("uq_knowledge_passages_source_id_ordinal", "source_id", "ordinal", unique=True),
    Index("ix_knowledge_passages_terms", "terms", postgresql_using="gin").ddl_if(dialect="postgresql"),
    sqlite_autoincrement=True,
)
"""What is found and quoted. `terms` are its words as they are looked up, `scope` its project in one word, another one
for superseded revisions. On SQLite both lie in the full-text index `knowledge_words` too, which migrations make."""

KNOWLEDGE_VECTORS = Table(
    "knowledge_vectors",
    METADATA,
    Column("passage_id", _SEQ, ForeignKey("knowledge_passages.passage_id"), primary_key=True, autoincrement=False),
    _text("project_id"),
    _text("model_id"),
    Column("dim", Integer, nullable=False),
    Column("vector", LargeBinary, nullable=False),
    Index("ix_knowledge_vectors_project_id_model_id", "project_id", "model_id", "passage_id"),
)
"""What a passage means, as `dim` little-endian float32 of length 1, and the model that said so."""

KNOWLEDGE_STATE = Table(
    "knowledge_state",
    METADATA,
    Column("project_id", String, primary_key=True),
    Column("seq", _SEQ, nullable=False),
    Column("reload_seq", _SEQ, nullable=False),
)
"""How often a project's passages changed, and when something vanished or was replaced last: what caches follow."""
