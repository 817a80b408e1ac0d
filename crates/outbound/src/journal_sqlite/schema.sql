-- A number is never given twice: what was read of an erased stream is not written to another one.
CREATE TABLE streams (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    owner BLOB NOT NULL,
    identity TEXT NOT NULL,
    title TEXT NOT NULL DEFAULT '',
    life TEXT NOT NULL DEFAULT 'open',
    version INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    -- Where it stands in lists: as of an update that is less than a minute old.
    listed_at INTEGER NOT NULL,
    -- When someone must act: NULL for never, 0 for now, else microseconds.
    due_at INTEGER,
    waiting TEXT,
    -- Where its plan stands; NULL without one. Whether something is under way.
    plan TEXT,
    running INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    parked TEXT,
    -- Whether a turn is under way that waits for nobody, and how many bytes its events and outputs take.
    takes_room INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0,
    counted_bytes INTEGER NOT NULL DEFAULT 0,
    -- What its models were used, all in all, and how much of that its owner took up.
    tokens INTEGER NOT NULL DEFAULT 0,
    cost_micros INTEGER NOT NULL DEFAULT 0,
    counted_tokens INTEGER NOT NULL DEFAULT 0,
    counted_cost_micros INTEGER NOT NULL DEFAULT 0,
    -- Up to which event it is found by its words.
    searched INTEGER NOT NULL DEFAULT 0,
    -- How far its chain of decisions has come, and how far the audit log took it up.
    logged INTEGER NOT NULL DEFAULT 0,
    taken INTEGER NOT NULL DEFAULT 0,
    UNIQUE (owner, identity)
);
CREATE INDEX streams_due ON streams (due_at) WHERE due_at IS NOT NULL AND parked IS NULL;
CREATE INDEX streams_waiting ON streams (listed_at) WHERE waiting IS NOT NULL;
CREATE INDEX streams_owner_waiting ON streams (owner, listed_at) WHERE waiting IS NOT NULL;
CREATE INDEX streams_owner ON streams (owner, listed_at);
CREATE INDEX streams_heads ON streams (id) WHERE logged > taken;
CREATE INDEX streams_room ON streams (owner) WHERE takes_room;
CREATE INDEX streams_planning ON streams (id) WHERE plan IS NOT NULL;

-- The streams that moved and whose owners were not charged since.
CREATE TABLE uncounted (
    owner BLOB NOT NULL,
    stream INTEGER NOT NULL,
    PRIMARY KEY (owner, stream)
) WITHOUT ROWID;

-- The streams with events that are not found by their words yet.
CREATE TABLE unindexed (
    owner BLOB NOT NULL,
    stream INTEGER NOT NULL,
    PRIMARY KEY (owner, stream)
) WITHOUT ROWID;

-- Apart from the stream, whose row is written anew by every command.
CREATE TABLE snapshots (
    stream INTEGER PRIMARY KEY REFERENCES streams (id),
    version INTEGER NOT NULL,
    fold_version INTEGER NOT NULL,
    body BLOB NOT NULL
);

-- Conversations as they stood after they were summed up: derived from the events, and read instead of them.
CREATE TABLE views (
    stream INTEGER PRIMARY KEY REFERENCES streams (id),
    upto INTEGER NOT NULL,
    form INTEGER NOT NULL,
    body BLOB NOT NULL
);

-- In the order of their streams, by one number: a table without row ids would give each row of more than a quarter of a page
-- a page of its own.
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    stream INTEGER NOT NULL AS (id >> 32),
    seq INTEGER NOT NULL AS (id & 0xFFFFFFFF),
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body BLOB NOT NULL
);

-- The events with which a person decided something: where lists find them.
CREATE TABLE decisions (
    event INTEGER PRIMARY KEY,
    owner BLOB NOT NULL,
    at INTEGER NOT NULL
);
CREATE INDEX decisions_owner ON decisions (owner, at);
CREATE INDEX decisions_at ON decisions (at);

-- What commands were answered that may be asked again.
CREATE TABLE answers (
    stream INTEGER NOT NULL REFERENCES streams (id),
    command BLOB NOT NULL,
    at INTEGER NOT NULL,
    before INTEGER NOT NULL,
    version INTEGER NOT NULL,
    refusal TEXT,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (stream, command)
) WITHOUT ROWID;
CREATE INDEX answers_at ON answers (at);

-- Outputs that are longer than what the model reads, whole. A long one lies beside the rows, and has no body here.
CREATE TABLE outputs (
    stream INTEGER NOT NULL REFERENCES streams (id),
    digest BLOB NOT NULL,
    body BLOB,
    PRIMARY KEY (stream, digest)
);

CREATE TABLE owners (
    id BLOB PRIMARY KEY,
    -- The name of the person.
    name TEXT NOT NULL UNIQUE,
    -- How many bytes of their sessions were taken up.
    bytes INTEGER NOT NULL DEFAULT 0,
    version INTEGER NOT NULL DEFAULT 0,
    fold_version INTEGER NOT NULL DEFAULT 0,
    state BLOB
) WITHOUT ROWID;
CREATE TABLE owner_events (
    owner BLOB NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (owner, seq)
) WITHOUT ROWID;

-- The audit log: what belongs to the installation, and how far the decisions of every session had come.
CREATE TABLE installation_events (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body BLOB NOT NULL
);
CREATE TABLE installation_state (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    version INTEGER NOT NULL,
    fold_version INTEGER NOT NULL,
    body BLOB NOT NULL
);

-- The digests with which the chains of erased sessions began: their keys are not used again. What is not done may still lie in
-- the unused parts of pages, and then in the log beside the file.
CREATE TABLE erased (
    session BLOB PRIMARY KEY,
    scrub TEXT NOT NULL CHECK (scrub IN ('pages', 'log', 'done'))
) WITHOUT ROWID;

-- What is remembered, as it is looked up; the events are the truth.
CREATE TABLE memory_scopes (
    id INTEGER PRIMARY KEY,
    owner BLOB NOT NULL,
    -- The identity of the owner's session. Empty for what is known everywhere.
    session TEXT NOT NULL,
    -- Empty, or the goal or task.
    part TEXT NOT NULL,
    items INTEGER NOT NULL DEFAULT 0,
    words INTEGER NOT NULL DEFAULT 0,
    UNIQUE (owner, session, part)
);
CREATE TABLE memory (
    id INTEGER PRIMARY KEY,
    scope INTEGER NOT NULL REFERENCES memory_scopes (id),
    item BLOB NOT NULL,
    at INTEGER NOT NULL,
    words INTEGER NOT NULL,
    body BLOB NOT NULL,
    UNIQUE (scope, item)
);
CREATE INDEX memory_item ON memory (item);
CREATE INDEX memory_newest ON memory (scope, at);
-- The words of an item, and its scope as one more word that no text can have.
CREATE VIRTUAL TABLE memory_words USING fts5 (
    words, content = '', contentless_delete = 1, detail = none,
    tokenize = "unicode61 remove_diacritics 0 tokenchars '_'"
);
-- The words of what was said and of plans, and of the title under the number 0, with their owner as one more word that no
-- text can have. A row has the number of its event.
CREATE VIRTUAL TABLE said_words USING fts5 (
    words, content = '', contentless_delete = 1, detail = none,
    tokenize = "unicode61 remove_diacritics 0 tokenchars '_'"
);
