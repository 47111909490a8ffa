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
    record TEXT NOT NULL,
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
    subject VARCHAR NOT NULL,
    "key" VARCHAR NOT NULL,
    revision INTEGER NOT NULL,
    change VARCHAR NOT NULL,
    author VARCHAR NOT NULL
);
CREATE INDEX ix_changelog_project_id_seq ON changelog (project_id, seq);
INSERT INTO alembic_version (version_num) VALUES ('0001');
