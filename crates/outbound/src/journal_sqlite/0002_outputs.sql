-- Outputs that are longer than what the model reads, whole.
CREATE TABLE outputs (
    stream INTEGER NOT NULL REFERENCES streams (id),
    digest BLOB NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (stream, digest)
);
