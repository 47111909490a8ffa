-- Written by `python -m metaforge.store.upgrade --write-schema` from the migrations; a test compares.
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE calls (
    seq INTEGER NOT NULL,
    call_id VARCHAR NOT NULL,
    tool_id VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    started_at VARCHAR NOT NULL,
    session_id VARCHAR NOT NULL,
    record TEXT NOT NULL, work_session_id VARCHAR DEFAULT '' NOT NULL, event_seq INTEGER DEFAULT '0' NOT NULL,
    CONSTRAINT pk_calls PRIMARY KEY (seq)
);
CREATE UNIQUE INDEX uq_calls_call_id ON calls (call_id);
CREATE INDEX ix_calls_started_at ON calls (started_at);
CREATE TABLE call_files (
    sha256 VARCHAR NOT NULL,
    call_id VARCHAR NOT NULL,
    direction VARCHAR NOT NULL,
    CONSTRAINT pk_call_files PRIMARY KEY (sha256, call_id, direction)
)
 WITHOUT ROWID;
CREATE TABLE changelog (
    seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    at VARCHAR NOT NULL,
    project_id VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    ref VARCHAR NOT NULL,
    node_id VARCHAR NOT NULL,
    body TEXT NOT NULL,
    author VARCHAR NOT NULL,
    run_id VARCHAR NOT NULL
);
CREATE INDEX ix_changelog_project_id_seq ON changelog (project_id, seq);
CREATE TABLE projects (
    project_id VARCHAR NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    status VARCHAR NOT NULL,
    author VARCHAR NOT NULL,
    created_at VARCHAR NOT NULL,
    updated_at VARCHAR NOT NULL,
    deleted_at VARCHAR NOT NULL,
    CONSTRAINT pk_projects PRIMARY KEY (project_id)
);
CREATE INDEX ix_projects_created_at ON projects (created_at);
CREATE TABLE runs (
    run_id VARCHAR NOT NULL,
    project_id VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    flow_version VARCHAR NOT NULL,
    flow_approved INTEGER NOT NULL,
    phase VARCHAR NOT NULL,
    gate VARCHAR NOT NULL,
    created_at VARCHAR NOT NULL,
    updated_at VARCHAR NOT NULL,
    CONSTRAINT pk_runs PRIMARY KEY (run_id)
);
CREATE TABLE items (
    item_id VARCHAR NOT NULL,
    project_id VARCHAR NOT NULL,
    "key" VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    family VARCHAR NOT NULL,
    name TEXT NOT NULL,
    match_key VARCHAR NOT NULL,
    head_revision INTEGER,
    head_node_id VARCHAR,
    last_revision INTEGER NOT NULL,
    created_at VARCHAR NOT NULL,
    updated_at VARCHAR NOT NULL,
    CONSTRAINT pk_items PRIMARY KEY (item_id)
);
CREATE INDEX ix_items_project_id_family_match_key ON items (project_id, family, match_key);
CREATE UNIQUE INDEX uq_items_key_project_id ON items ("key", project_id);
CREATE TABLE nodes (
    node_id VARCHAR NOT NULL,
    project_id VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL,
    body_sha256 VARCHAR NOT NULL,
    item_id VARCHAR,
    item_key VARCHAR NOT NULL,
    revision INTEGER,
    status VARCHAR NOT NULL,
    change_set VARCHAR NOT NULL,
    phase VARCHAR NOT NULL,
    gate VARCHAR NOT NULL,
    change_reason TEXT NOT NULL,
    author VARCHAR NOT NULL,
    run_id VARCHAR NOT NULL,
    prior_node_id VARCHAR NOT NULL,
    decided_by VARCHAR NOT NULL,
    approved_at VARCHAR NOT NULL,
    status_reason TEXT NOT NULL,
    closed_at VARCHAR NOT NULL,
    adopted INTEGER NOT NULL,
    created_at VARCHAR NOT NULL, handle VARCHAR DEFAULT '' NOT NULL,
    CONSTRAINT pk_nodes PRIMARY KEY (node_id),
    CONSTRAINT fk_nodes_item_id FOREIGN KEY(item_id) REFERENCES items (item_id)
);
CREATE INDEX ix_nodes_change_set ON nodes (change_set) WHERE change_set != '';
CREATE INDEX ix_nodes_project_id_kind ON nodes (project_id, kind);
CREATE UNIQUE INDEX uq_nodes_item_id_revision ON nodes (item_id, revision);
CREATE TABLE drafts (
    run_id VARCHAR NOT NULL,
    item_id VARCHAR NOT NULL,
    node_id VARCHAR NOT NULL,
    revision INTEGER NOT NULL,
    base_revision INTEGER,
    base_node_id VARCHAR,
    phase VARCHAR NOT NULL,
    CONSTRAINT pk_drafts PRIMARY KEY (run_id, item_id),
    CONSTRAINT fk_drafts_item_id FOREIGN KEY(item_id) REFERENCES items (item_id),
    CONSTRAINT fk_drafts_node_id FOREIGN KEY(node_id) REFERENCES nodes (node_id)
);
CREATE INDEX ix_drafts_item_id ON drafts (item_id);
CREATE TABLE links (
    link_id VARCHAR NOT NULL,
    project_id VARCHAR NOT NULL,
    type VARCHAR NOT NULL,
    source_node_id VARCHAR NOT NULL,
    source_subject VARCHAR NOT NULL,
    source_revision INTEGER,
    target_node_id VARCHAR NOT NULL,
    target_subject VARCHAR NOT NULL,
    target_revision INTEGER,
    change_set VARCHAR NOT NULL,
    reviewed_revision INTEGER,
    reviewed_by VARCHAR NOT NULL,
    reviewed_at VARCHAR NOT NULL,
    body TEXT NOT NULL,
    author VARCHAR NOT NULL,
    run_id VARCHAR NOT NULL,
    created_at VARCHAR NOT NULL,
    CONSTRAINT pk_links PRIMARY KEY (link_id),
    CONSTRAINT fk_links_source_node_id FOREIGN KEY(source_node_id) REFERENCES nodes (node_id),
    CONSTRAINT fk_links_target_node_id FOREIGN KEY(target_node_id) REFERENCES nodes (node_id)
);
CREATE INDEX ix_links_outgoing ON links (source_subject, type, target_subject, change_set, source_revision, source_node_id);
CREATE INDEX ix_links_incoming ON links (target_subject, type, source_subject, change_set, source_revision, source_node_id);
CREATE INDEX ix_links_project_id ON links (project_id);
CREATE INDEX ix_links_source_node_id ON links (source_node_id);
CREATE INDEX ix_links_target_node_id ON links (target_node_id);
CREATE TABLE sessions (
    session_id VARCHAR NOT NULL,
    project_id VARCHAR NOT NULL,
    client_session_id VARCHAR NOT NULL,
    agent_code VARCHAR NOT NULL,
    task_type VARCHAR NOT NULL,
    title TEXT NOT NULL,
    status VARCHAR NOT NULL,
    summary TEXT NOT NULL,
    implicit INTEGER NOT NULL,
    author VARCHAR NOT NULL,
    client_name VARCHAR NOT NULL,
    event_count INTEGER NOT NULL,
    started_at VARCHAR NOT NULL,
    last_event_at VARCHAR NOT NULL,
    completed_at VARCHAR NOT NULL,
    CONSTRAINT pk_sessions PRIMARY KEY (session_id)
);
CREATE INDEX ix_sessions_client_session_id ON sessions (client_session_id);
CREATE INDEX ix_sessions_project_id ON sessions (project_id);
CREATE TABLE session_events (
    session_id VARCHAR NOT NULL,
    seq INTEGER NOT NULL,
    event_id VARCHAR NOT NULL,
    type VARCHAR NOT NULL,
    message TEXT NOT NULL,
    data TEXT NOT NULL,
    call_id VARCHAR NOT NULL,
    author VARCHAR NOT NULL,
    at VARCHAR NOT NULL,
    CONSTRAINT pk_session_events PRIMARY KEY (session_id, seq),
    CONSTRAINT fk_session_events_session_id FOREIGN KEY(session_id) REFERENCES sessions (session_id)
);
CREATE INDEX ix_session_events_call_id ON session_events (call_id);
CREATE UNIQUE INDEX uq_session_events_event_id ON session_events (event_id);
CREATE TABLE baselines (
    baseline_id VARCHAR NOT NULL,
    project_id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    note TEXT NOT NULL,
    seq INTEGER NOT NULL,
    digest VARCHAR NOT NULL,
    author VARCHAR NOT NULL,
    created_at VARCHAR NOT NULL,
    CONSTRAINT pk_baselines PRIMARY KEY (baseline_id)
);
CREATE UNIQUE INDEX uq_baselines_project_id_name ON baselines (project_id, name);
CREATE TABLE baseline_entries (
    baseline_id VARCHAR NOT NULL,
    item_key VARCHAR NOT NULL,
    revision INTEGER NOT NULL,
    node_id VARCHAR NOT NULL,
    name TEXT NOT NULL,
    CONSTRAINT pk_baseline_entries PRIMARY KEY (baseline_id, item_key),
    CONSTRAINT fk_baseline_entries_baseline_id FOREIGN KEY(baseline_id) REFERENCES baselines (baseline_id),
    CONSTRAINT fk_baseline_entries_node_id FOREIGN KEY(node_id) REFERENCES nodes (node_id)
);
CREATE TABLE approval_events (
    seq INTEGER NOT NULL,
    approval_id VARCHAR NOT NULL,
    event VARCHAR NOT NULL,
    body TEXT NOT NULL,
    at VARCHAR NOT NULL,
    prev_hash VARCHAR NOT NULL,
    hash VARCHAR NOT NULL,
    CONSTRAINT pk_approval_events PRIMARY KEY (seq)
);
CREATE INDEX ix_approval_events_approval_id_seq ON approval_events (approval_id, seq);
CREATE TABLE approvals (
    approval_id VARCHAR NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    tool_id VARCHAR NOT NULL,
    project_id VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    on_dashboard INTEGER NOT NULL,
    holder VARCHAR NOT NULL,
    request TEXT NOT NULL,
    decision TEXT NOT NULL,
    ended_reason TEXT NOT NULL,
    expires_at VARCHAR NOT NULL,
    updated_at VARCHAR NOT NULL, whole TEXT DEFAULT '' NOT NULL,
    CONSTRAINT pk_approvals PRIMARY KEY (approval_id)
);
CREATE UNIQUE INDEX uq_approvals_first_seq ON approvals (first_seq);
CREATE INDEX ix_approvals_project_id_first_seq ON approvals (project_id, first_seq);
CREATE INDEX ix_approvals_open ON approvals (state, first_seq) WHERE state in ('awaiting_approval', 'approved', 'running');
CREATE TABLE idempotent_writes (
    actor_id VARCHAR NOT NULL,
    "key" VARCHAR NOT NULL,
    digest VARCHAR NOT NULL,
    call_id VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    holder VARCHAR NOT NULL,
    result TEXT NOT NULL,
    updated_at VARCHAR NOT NULL,
    CONSTRAINT pk_idempotent_writes PRIMARY KEY (actor_id, "key")
);
CREATE INDEX ix_idempotent_writes_updated_at ON idempotent_writes (updated_at);
CREATE TRIGGER approval_events_no_update BEFORE UPDATE ON approval_events BEGIN SELECT RAISE(ABORT, 'approval_events is append-only'); END;
CREATE TRIGGER approval_events_no_delete BEFORE DELETE ON approval_events BEGIN SELECT RAISE(ABORT, 'approval_events is append-only'); END;
CREATE TRIGGER approval_events_in_order BEFORE INSERT ON approval_events WHEN NEW.seq <> (SELECT coalesce(max(seq), 0) + 1 FROM approval_events) BEGIN SELECT RAISE(ABORT, 'approval_events is append-only'); END;
CREATE INDEX ix_calls_work_session_id_event_seq ON calls (work_session_id, event_seq) WHERE work_session_id != '';
CREATE INDEX ix_nodes_handle ON nodes (handle) WHERE handle != '';
CREATE TABLE knowledge_sources (
    source_id VARCHAR NOT NULL,
    project_id VARCHAR NOT NULL,
    source_path TEXT NOT NULL,
    revision INTEGER NOT NULL,
    knowledge_type VARCHAR NOT NULL,
    content_sha256 VARCHAR NOT NULL,
    digest VARCHAR NOT NULL,
    metadata TEXT NOT NULL,
    work_product_id VARCHAR NOT NULL,
    request_id VARCHAR NOT NULL,
    passage_count INTEGER NOT NULL,
    author VARCHAR NOT NULL,
    session_id VARCHAR NOT NULL,
    created_at VARCHAR NOT NULL,
    superseded_at VARCHAR NOT NULL,
    superseded_by VARCHAR NOT NULL,
    CONSTRAINT pk_knowledge_sources PRIMARY KEY (source_id)
);
CREATE UNIQUE INDEX uq_knowledge_sources_project_id_source_path_revision ON knowledge_sources (project_id, source_path, revision);
CREATE UNIQUE INDEX uq_knowledge_sources_current ON knowledge_sources (project_id, source_path) WHERE superseded_at = '';
CREATE TABLE knowledge_passages (
    passage_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    source_id VARCHAR NOT NULL,
    project_id VARCHAR NOT NULL,
    ordinal INTEGER NOT NULL,
    text TEXT NOT NULL,
    heading TEXT NOT NULL,
    page INTEGER,
    line INTEGER,
    kind VARCHAR NOT NULL,
    context TEXT NOT NULL,
    scope VARCHAR NOT NULL,
    terms TEXT NOT NULL,
    CONSTRAINT fk_knowledge_passages_source_id FOREIGN KEY(source_id) REFERENCES knowledge_sources (source_id)
);
CREATE UNIQUE INDEX uq_knowledge_passages_source_id_ordinal ON knowledge_passages (source_id, ordinal);
CREATE TABLE knowledge_vectors (
    passage_id INTEGER NOT NULL,
    project_id VARCHAR NOT NULL,
    model_id VARCHAR NOT NULL,
    dim INTEGER NOT NULL,
    vector BLOB NOT NULL,
    CONSTRAINT pk_knowledge_vectors PRIMARY KEY (passage_id),
    CONSTRAINT fk_knowledge_vectors_passage_id FOREIGN KEY(passage_id) REFERENCES knowledge_passages (passage_id)
);
CREATE INDEX ix_knowledge_vectors_project_id_model_id ON knowledge_vectors (project_id, model_id, passage_id);
CREATE TABLE knowledge_state (
    project_id VARCHAR NOT NULL,
    seq INTEGER NOT NULL,
    reload_seq INTEGER NOT NULL,
    CONSTRAINT pk_knowledge_state PRIMARY KEY (project_id)
);
CREATE VIRTUAL TABLE knowledge_words USING fts5(scope, terms, content='knowledge_passages', content_rowid='passage_id', tokenize="unicode61 remove_diacritics 0 tokenchars '.-_/+%#'");
INSERT INTO alembic_version (version_num) VALUES ('0007');
