-- Sessions have owners, and what belongs to an owner is a stream of its own.
ALTER TABLE streams ADD COLUMN owner TEXT;
ALTER TABLE streams ADD COLUMN title TEXT NOT NULL DEFAULT '';
ALTER TABLE streams ADD COLUMN life TEXT NOT NULL DEFAULT 'open';
ALTER TABLE streams ADD COLUMN planning INTEGER NOT NULL DEFAULT 0;
CREATE INDEX streams_owner ON streams (owner, updated_at);
CREATE INDEX streams_planning ON streams (id) WHERE planning;
-- A pointer that is gone is repaired when it is resolved.
DROP TABLE pointers;

CREATE TABLE owners (
    id TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    fold_version INTEGER NOT NULL,
    state BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE owner_events (
    owner TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (owner, seq)
) WITHOUT ROWID;

-- What is remembered, as it is looked up; the events are the truth.
CREATE TABLE memory_scopes (
    id INTEGER PRIMARY KEY,
    -- Empty for what belongs to a session.
    owner TEXT NOT NULL,
    -- Empty for what is known everywhere.
    session TEXT NOT NULL,
    -- Empty, or the goal or task.
    part TEXT NOT NULL,
    items INTEGER NOT NULL DEFAULT 0,
    words INTEGER NOT NULL DEFAULT 0,
    UNIQUE (session, part, owner)
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
