CREATE TABLE streams (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner UUID NOT NULL,
    identity TEXT NOT NULL,
    title TEXT NOT NULL DEFAULT '',
    life TEXT NOT NULL DEFAULT 'open',
    version BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    -- When someone must act: NULL for never, 0 for now, else microseconds.
    due_at BIGINT,
    -- Until when it is reserved for the node that took it up, and which that was.
    reserved_until BIGINT NOT NULL DEFAULT 0,
    reserved_by UUID,
    waiting TEXT,
    planning BOOLEAN NOT NULL DEFAULT false,
    failures INTEGER NOT NULL DEFAULT 0,
    parked TEXT,
    -- Whether a turn is under way, and how many bytes its events and outputs take.
    running BOOLEAN NOT NULL DEFAULT false,
    bytes BIGINT NOT NULL DEFAULT 0,
    -- What its models were used, all in all, and how much of that its owner's stream took up.
    tokens BIGINT NOT NULL DEFAULT 0,
    cost_micros BIGINT NOT NULL DEFAULT 0,
    counted_tokens BIGINT NOT NULL DEFAULT 0,
    counted_cost_micros BIGINT NOT NULL DEFAULT 0,
    -- How far its chain of decisions has come, and how far the audit log took it up.
    logged BIGINT NOT NULL DEFAULT 0,
    taken BIGINT NOT NULL DEFAULT 0,
    snapshot BYTEA,
    snapshot_version BIGINT NOT NULL DEFAULT 0,
    fold_version INTEGER NOT NULL DEFAULT 0,
    UNIQUE (owner, identity)
) WITH (fillfactor = 70);
CREATE INDEX streams_due ON streams (due_at) WHERE due_at IS NOT NULL AND parked IS NULL;
CREATE INDEX streams_waiting ON streams (updated_at) WHERE waiting IS NOT NULL;
CREATE INDEX streams_owner ON streams (owner, updated_at);
CREATE INDEX streams_untaken ON streams (id) WHERE logged > taken;
CREATE INDEX streams_running ON streams (owner) WHERE running;
CREATE INDEX streams_uncounted ON streams (owner) WHERE tokens > counted_tokens OR cost_micros > counted_cost_micros;
CREATE INDEX streams_planning ON streams (id) WHERE planning;

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
    checksum BIGINT NOT NULL,
    PRIMARY KEY (stream, command)
) PARTITION BY RANGE (stream);

-- Outputs that are longer than what the model reads, whole.
CREATE TABLE outputs (
    stream BIGINT NOT NULL,
    digest BYTEA NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (stream, digest)
) PARTITION BY RANGE (stream);

-- What all nodes agree on: the passphrase's hash, the level of events that may be written.
CREATE TABLE agreed (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- What is told of grants. The installation's events say which are good.
CREATE TABLE grants (
    secret TEXT PRIMARY KEY,
    id UUID NOT NULL UNIQUE,
    created BIGINT NOT NULL,
    body TEXT NOT NULL
);

-- What passphrases are hashed to. The installation's events say which one is whose.
CREATE TABLE passphrases (
    digest TEXT PRIMARY KEY,
    hash TEXT NOT NULL
);

-- Each opens one stream, once.
CREATE UNLOGGED TABLE tickets (
    secret TEXT PRIMARY KEY,
    grant_id UUID NOT NULL,
    expires BIGINT NOT NULL
);

CREATE TABLE nodes (
    name TEXT PRIMARY KEY,
    seen_at BIGINT NOT NULL,
    version TEXT NOT NULL,
    level INTEGER NOT NULL
);

CREATE TABLE owners (
    id UUID PRIMARY KEY,
    -- The name of the person.
    name TEXT NOT NULL UNIQUE,
    version BIGINT NOT NULL DEFAULT 0,
    fold_version INTEGER NOT NULL DEFAULT 0,
    state BYTEA
);
CREATE TABLE owner_events (
    owner UUID NOT NULL,
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (owner, seq)
);

-- The audit log: what belongs to the installation, and how far the decisions of every session had come.
CREATE TABLE installation_events (
    seq BIGINT PRIMARY KEY,
    at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    body BYTEA NOT NULL
);
CREATE TABLE installation_state (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    version BIGINT NOT NULL,
    fold_version INTEGER NOT NULL,
    body BYTEA NOT NULL
);

-- The digests with which the chains of erased sessions began: their keys are not used again.
CREATE TABLE erased (
    session BYTEA PRIMARY KEY
);

-- What is remembered, as it is looked up; the events are the truth.
CREATE TABLE memory_scopes (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner UUID NOT NULL,
    -- The identity of the owner's session. Empty for what is known everywhere.
    session TEXT NOT NULL,
    -- Empty, or the goal or task.
    part TEXT NOT NULL,
    items BIGINT NOT NULL DEFAULT 0,
    words BIGINT NOT NULL DEFAULT 0,
    UNIQUE (owner, session, part)
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
