CREATE TABLE streams (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    identity TEXT NOT NULL UNIQUE,
    version BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    -- When someone must act: NULL for never, 0 for now, else microseconds.
    due_at BIGINT,
    waiting TEXT,
    failures INTEGER NOT NULL DEFAULT 0,
    parked TEXT,
    snapshot BYTEA,
    snapshot_version BIGINT NOT NULL DEFAULT 0,
    fold_version INTEGER NOT NULL DEFAULT 0
) WITH (fillfactor = 70);
CREATE INDEX streams_due ON streams (due_at) WHERE due_at IS NOT NULL AND parked IS NULL;
CREATE INDEX streams_waiting ON streams (updated_at) WHERE waiting IS NOT NULL;
CREATE INDEX streams_updated ON streams (updated_at);

-- Streams are numbered as they are born, so a range of them is an age: old ones are detached together.
CREATE TABLE events (
    stream BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (stream, seq)
) PARTITION BY RANGE (stream);

CREATE TABLE answers (
    stream BIGINT NOT NULL,
    command UUID NOT NULL,
    before BIGINT NOT NULL,
    version BIGINT NOT NULL,
    refusal TEXT,
    PRIMARY KEY (stream, command)
) PARTITION BY RANGE (stream);

CREATE TABLE pointers (
    channel TEXT NOT NULL,
    chat TEXT NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (channel, chat)
);

-- What all nodes agree on: the passphrase's hash, the level of events that may be written.
CREATE TABLE agreed (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE grants (
    secret TEXT PRIMARY KEY,
    id UUID NOT NULL UNIQUE,
    body TEXT NOT NULL
);

CREATE TABLE nodes (
    name TEXT PRIMARY KEY,
    seen_at BIGINT NOT NULL,
    version TEXT NOT NULL,
    level INTEGER NOT NULL
);
