CREATE TABLE streams (
    id INTEGER PRIMARY KEY,
    identity TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    -- When someone must act: NULL for never, 0 for now, else microseconds.
    due_at INTEGER,
    waiting TEXT,
    failures INTEGER NOT NULL DEFAULT 0,
    parked TEXT,
    snapshot BLOB,
    snapshot_version INTEGER NOT NULL DEFAULT 0,
    fold_version INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX streams_due ON streams (due_at) WHERE due_at IS NOT NULL AND parked IS NULL;
CREATE INDEX streams_waiting ON streams (updated_at) WHERE waiting IS NOT NULL;
CREATE INDEX streams_updated ON streams (updated_at);

CREATE TABLE events (
    stream INTEGER NOT NULL REFERENCES streams (id),
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (stream, seq)
) WITHOUT ROWID;

CREATE TABLE answers (
    stream INTEGER NOT NULL REFERENCES streams (id),
    command BLOB NOT NULL,
    before INTEGER NOT NULL,
    version INTEGER NOT NULL,
    refusal TEXT,
    PRIMARY KEY (stream, command)
) WITHOUT ROWID;

CREATE TABLE pointers (
    channel TEXT NOT NULL,
    chat TEXT NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (channel, chat)
) WITHOUT ROWID;
