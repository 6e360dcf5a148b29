-- Every record of the log, as it is: nothing is left out, what does not count is marked. The row of a record is
-- (topic, partition, offset); a row that is written twice is one row after a merge, and one row to whoever reads
-- with FINAL, as all views do.
CREATE TABLE IF NOT EXISTS events {{.OnCluster}}
(
    topic     LowCardinality(String),
    partition UInt32,
    offset    UInt64,
    -- Of the fact: the same fact written twice has one id.
    id        String,
    -- Name of the message in schemas/events/v1; empty if the record cannot be decoded.
    type      LowCardinality(String),
    source    LowCardinality(String),
    instance  LowCardinality(String),
    queue     LowCardinality(String),
    -- The change that it is about, if it is about one.
    subject   String,
    -- The writer's clock.
    time      DateTime64(6, 'UTC'),
    -- Offset of the claim that it was written under, -1 where none is needed.
    term      Int64,
    -- 0: it was written under a term that had ended, is a claim, or cannot be decoded. It has no effect.
    counts    Bool,
    error     String,
    -- The message as JSON, with the names of schemas/events/v1; 64-bit integers are texts there.
    payload   String CODEC(ZSTD(1)),
    INDEX by_subject subject TYPE bloom_filter(0.01) GRANULARITY 4,
    INDEX by_time    time    TYPE minmax             GRANULARITY 4
)
ENGINE = {{engine "ReplacingMergeTree"}}
PARTITION BY topic
ORDER BY (topic, partition, offset)
SETTINGS {{.Window}};

-- How far each partition of each topic is in all tables: every record before next is in every table that it
-- belongs to. events may be ahead of it by the one batch that was being written.
CREATE TABLE IF NOT EXISTS positions {{.OnCluster}}
(
    topic     LowCardinality(String),
    partition UInt32,
    next      UInt64,
    updated   DateTime64(3, 'UTC')
)
ENGINE = {{engine "ReplacingMergeTree" "next"}}
ORDER BY (topic, partition);

-- The one log that this database is the history of.
CREATE TABLE IF NOT EXISTS log {{.OnCluster}}
(
    id    String,
    since DateTime64(3, 'UTC')
)
ENGINE = {{engine "ReplacingMergeTree"}}
ORDER BY id;
