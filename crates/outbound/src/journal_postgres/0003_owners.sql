-- Sessions have owners, and what belongs to an owner is a stream of its own.
ALTER TABLE streams ADD COLUMN owner TEXT;
ALTER TABLE streams ADD COLUMN title TEXT NOT NULL DEFAULT '';
ALTER TABLE streams ADD COLUMN life TEXT NOT NULL DEFAULT 'open';
ALTER TABLE streams ADD COLUMN planning BOOLEAN NOT NULL DEFAULT false;
CREATE INDEX streams_owner ON streams (owner, updated_at);
CREATE INDEX streams_planning ON streams (id) WHERE planning;
-- A pointer that is gone is repaired when it is resolved.
DROP TABLE pointers;

CREATE TABLE owners (
    id TEXT PRIMARY KEY,
    version BIGINT NOT NULL,
    fold_version INTEGER NOT NULL,
    state BYTEA NOT NULL
);
CREATE TABLE owner_events (
    owner TEXT NOT NULL,
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (owner, seq)
);

-- What is remembered, as it is looked up; the events are the truth.
CREATE TABLE memory_scopes (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- Empty for what belongs to a session.
    owner TEXT NOT NULL,
    -- Empty for what is known everywhere.
    session TEXT NOT NULL,
    -- Empty, or the goal or task.
    part TEXT NOT NULL,
    items BIGINT NOT NULL DEFAULT 0,
    words BIGINT NOT NULL DEFAULT 0,
    UNIQUE (session, part, owner)
);
CREATE TABLE memory (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scope BIGINT NOT NULL REFERENCES memory_scopes (id),
    item UUID NOT NULL,
    at BIGINT NOT NULL,
    words BIGINT NOT NULL,
    found_by TSVECTOR NOT NULL,
    body BYTEA NOT NULL,
    UNIQUE (scope, item)
);
CREATE INDEX memory_item ON memory (item);
CREATE INDEX memory_newest ON memory (scope, at);
CREATE INDEX memory_found_by ON memory USING gin (found_by);
