-- One row for each session. Every append writes it anew, so what an index holds changes seldom: an update that changes no
-- such column touches no index.
CREATE TABLE streams (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner UUID NOT NULL,
    identity TEXT COLLATE "C" NOT NULL,
    title TEXT NOT NULL DEFAULT '',
    life TEXT NOT NULL DEFAULT 'open',
    version BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    -- Where it stands in lists: as of an update that is less than a minute old.
    listed_at BIGINT NOT NULL,
    waiting TEXT,
    -- Where its plan stands; NULL without one. Whether something is under way.
    plan TEXT,
    running BOOLEAN NOT NULL DEFAULT false,
    failures INTEGER NOT NULL DEFAULT 0,
    parked TEXT,
    -- Whether a turn is under way that waits for nobody, and how many bytes its events and outputs take.
    takes_room BOOLEAN NOT NULL DEFAULT false,
    bytes BIGINT NOT NULL DEFAULT 0,
    counted_bytes BIGINT NOT NULL DEFAULT 0,
    -- What its models were used, all in all, and how much of that its owner took up.
    tokens BIGINT NOT NULL DEFAULT 0,
    cost_micros BIGINT NOT NULL DEFAULT 0,
    counted_tokens BIGINT NOT NULL DEFAULT 0,
    counted_cost_micros BIGINT NOT NULL DEFAULT 0,
    -- Up to which event it is found by its words.
    searched BIGINT NOT NULL DEFAULT 0,
    -- How far its chain of decisions has come, and how far the audit log took it up.
    logged BIGINT NOT NULL DEFAULT 0,
    taken BIGINT NOT NULL DEFAULT 0,
    UNIQUE (owner, identity)
) WITH (fillfactor = 70);
CREATE INDEX streams_waiting ON streams (listed_at, id) WHERE waiting IS NOT NULL;
CREATE INDEX streams_owner_waiting ON streams (owner, listed_at, id) WHERE waiting IS NOT NULL;
CREATE INDEX streams_owner ON streams (owner, listed_at, id);
CREATE INDEX streams_heads ON streams (id) WHERE logged > taken;
CREATE INDEX streams_planning ON streams (id) WHERE plan IS NOT NULL;

-- The streams on which someone must act, and those whose turn takes room of its owner. One that is parked keeps its row, so
-- that an append that waits for whoever takes it up again finds the row and not its absence.
CREATE TABLE due (
    stream BIGINT PRIMARY KEY,
    owner UUID NOT NULL,
    -- When someone must act: NULL for never, 0 for now, else microseconds.
    due_at BIGINT,
    moved_at BIGINT NOT NULL,
    takes_room BOOLEAN NOT NULL,
    parked BOOLEAN NOT NULL DEFAULT false,
    -- Until when it is reserved for the node that took it up, and which that was.
    reserved_until BIGINT NOT NULL DEFAULT 0,
    reserved_by UUID
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX due_due_at ON due (due_at) WHERE due_at IS NOT NULL AND NOT parked;
CREATE INDEX due_parked ON due (stream) WHERE parked;
CREATE INDEX due_room ON due (owner) WHERE takes_room AND NOT parked;

-- The streams that moved and whose owners were not charged since.
CREATE TABLE uncounted (
    owner UUID NOT NULL,
    stream BIGINT NOT NULL,
    PRIMARY KEY (owner, stream)
);

-- The streams with events that are not found by their words yet.
CREATE TABLE unindexed (
    owner UUID NOT NULL,
    stream BIGINT NOT NULL,
    PRIMARY KEY (owner, stream)
);

-- Apart from the stream, whose row is written anew by every append. What is compressed is not compressed again: here, and in
-- other tables.
CREATE TABLE snapshots (
    stream BIGINT PRIMARY KEY REFERENCES streams (id),
    version BIGINT NOT NULL,
    fold_version INTEGER NOT NULL,
    body BYTEA NOT NULL
);
ALTER TABLE snapshots ALTER body SET STORAGE EXTERNAL;

-- Conversations as they stood after they were summed up: derived from the events, and read instead of them.
CREATE TABLE views (
    stream BIGINT PRIMARY KEY REFERENCES streams (id),
    upto BIGINT NOT NULL,
    form INTEGER NOT NULL,
    body BYTEA NOT NULL
);
ALTER TABLE views ALTER body SET STORAGE EXTERNAL;

-- In as many parts as there will ever be, by the stream's number: see `PARTITIONED` in schema.rs.
CREATE TABLE events (
    stream BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (stream, seq)
) PARTITION BY HASH (stream);
ALTER TABLE events ALTER body SET STORAGE EXTERNAL;

-- The events with which a person decided something: where lists find them.
CREATE TABLE decisions (
    stream BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    owner UUID NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (stream, seq)
);
CREATE INDEX decisions_owner ON decisions (owner, at);
CREATE INDEX decisions_at ON decisions (at);

-- What commands were answered that may be asked again.
CREATE TABLE answers (
    stream BIGINT NOT NULL,
    command UUID NOT NULL,
    at BIGINT NOT NULL,
    before BIGINT NOT NULL,
    version BIGINT NOT NULL,
    refusal TEXT,
    checksum BIGINT NOT NULL,
    PRIMARY KEY (stream, command)
) PARTITION BY HASH (stream);
CREATE INDEX answers_at ON answers (at);

-- Outputs that are longer than what the model reads, whole. A long one lies beside the rows, and has no body here.
CREATE TABLE outputs (
    stream BIGINT NOT NULL,
    digest BYTEA NOT NULL,
    body BYTEA,
    PRIMARY KEY (stream, digest)
) PARTITION BY HASH (stream);
ALTER TABLE outputs ALTER body SET STORAGE EXTERNAL;

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
    level INTEGER NOT NULL,
    -- What does not work as it finds it, in sentences.
    trouble TEXT[] NOT NULL
);

CREATE TABLE owners (
    id UUID PRIMARY KEY,
    -- The name of the person.
    name TEXT NOT NULL UNIQUE,
    -- How many bytes of their sessions were taken up.
    bytes BIGINT NOT NULL DEFAULT 0,
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
    session TEXT COLLATE "C" NOT NULL,
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

-- The words of what was said and of plans, and of the title under the number 0, with their owner as one more word that no
-- text can have.
CREATE TABLE said_words (
    stream BIGINT NOT NULL REFERENCES streams (id),
    seq BIGINT NOT NULL,
    words TSVECTOR NOT NULL,
    PRIMARY KEY (stream, seq)
);
-- What waited to be sorted in would be looked through by every search.
CREATE INDEX said_words_words ON said_words USING gin (words) WITH (fastupdate = off);
