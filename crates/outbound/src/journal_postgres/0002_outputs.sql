-- Outputs that are longer than what the model reads, whole.
CREATE TABLE outputs (
    stream BIGINT NOT NULL,
    digest BYTEA NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (stream, digest)
) PARTITION BY RANGE (stream);
