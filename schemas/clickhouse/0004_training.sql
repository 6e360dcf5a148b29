-- What predictions were made from, and what came true of pairs: models are trained on what they will be asked with.

-- In the order of the schema of features (landfall train features); NaN is what was not known. Empty where none was made.
ALTER TABLE predictions {{.OnCluster}} ADD COLUMN IF NOT EXISTS features Array(Float32) CODEC(ZSTD(1));
ALTER TABLE predictions {{.OnCluster}} ADD COLUMN IF NOT EXISTS schema UInt32;

-- One row for each pair of which it came to light whether it breaks.
CREATE TABLE IF NOT EXISTS observations {{.OnCluster}}
(
    queue          LowCardinality(String),
    offset         UInt64,
    item           UInt32,
    position       UInt64,
    at             DateTime64(6, 'UTC'),
    change         String,
    revision       UInt64,
    -- The change ahead.
    other          String,
    other_revision UInt64,
    -- Red with the other one, and green without.
    conflict       Bool
)
ENGINE = {{engine "ReplacingMergeTree"}}
ORDER BY (queue, offset, item)
SETTINGS {{.Window}};

-- Each revision that landed, or was rejected for what it did itself, with one of its vectors: one that is picked by its
-- place, so that a model sees changes at all times of their lives, and each once.
CREATE OR REPLACE VIEW training_success {{.OnCluster}} AS
SELECT
    p.queue AS queue, p.change AS change, p.revision AS revision, p.at AS at, p.ended_at AS ended_at, p.value AS predicted, p.std AS std, p.source AS source,
    p.schema AS schema, p.features AS features, toFloat64(p.outcome = 'landed') AS target, toUInt8(0) AS censored
FROM
(
    SELECT p.*, c.outcome AS outcome, assumeNotNull(c.ended_at) AS ended_at
    FROM (SELECT * FROM predictions FINAL WHERE kind = 'success' AND notEmpty(features)) AS p
    INNER JOIN change_outcomes AS c ON c.queue = p.queue AND c.change = p.change AND c.revision = p.revision
    WHERE isNotNull(c.ended_at) AND (c.outcome = 'landed' OR c.outcome = 'rejected' AND c.reason_class IN ('step_failed', 'invalid')) AND p.at <= assumeNotNull(c.ended_at)
    ORDER BY queue, change, revision, cityHash64(p.change, p.revision, p.offset)
    LIMIT 1 BY queue, change, revision
) AS p;

-- Each build that ran steps of its own, all of which passed, or were aborted with it (then it would have taken longer than
-- target), with the last vector before it was asked for.
CREATE OR REPLACE VIEW training_duration {{.OnCluster}} AS
SELECT
    b.queue AS queue, b.change AS change, b.revision AS revision, p.at AS at, b.finished AS ended_at, p.value AS predicted, p.std AS std, p.source AS source,
    p.schema AS schema, p.features AS features, b.seconds AS target, b.censored AS censored
FROM
(
    SELECT b.queue AS queue, b.change AS change, b.revision AS revision, b.scheduled AS scheduled, s.finished AS finished, s.seconds AS seconds, s.censored AS censored
    FROM
    (
        SELECT queue, build, change, revision, assumeNotNull(scheduled_at) AS scheduled
        FROM builds FINAL WHERE change != '' AND isNotNull(scheduled_at)
    ) AS b
    INNER JOIN
    (
        SELECT queue, build, max(finished_at) AS finished, dateDiff('millisecond', min(started_at), max(finished_at)) / 1000 AS seconds,
               toUInt8(countIf(outcome = 'aborted') > 0) AS censored
        FROM steps FINAL GROUP BY queue, build HAVING countIf(outcome NOT IN ('passed', 'aborted')) = 0 AND seconds > 0
    ) AS s ON s.queue = b.queue AND s.build = b.build
) AS b
ASOF INNER JOIN
(
    SELECT queue, change, revision, at, value, std, source, schema, features
    FROM predictions FINAL WHERE kind = 'duration' AND notEmpty(features)
) AS p ON p.queue = b.queue AND p.change = b.change AND p.revision = b.revision AND p.at <= b.scheduled;

-- Each pair of which it came to light whether it breaks, with the first vector of it.
CREATE OR REPLACE VIEW training_conflict {{.OnCluster}} AS
SELECT
    o.queue AS queue, o.change AS change, o.revision AS revision, p.at AS at, o.at AS ended_at, p.value AS predicted, p.std AS std, p.source AS source,
    p.schema AS schema, p.features AS features, toFloat64(o.conflict) AS target, toUInt8(0) AS censored
FROM (SELECT * FROM observations FINAL) AS o
INNER JOIN
(
    SELECT queue, change, revision, other, other_revision, offset, at, value, std, source, schema, features
    FROM predictions FINAL WHERE kind = 'conflict' AND notEmpty(features)
    ORDER BY queue, change, revision, other, other_revision, offset
    LIMIT 1 BY queue, change, revision, other, other_revision
) AS p ON p.queue = o.queue AND p.change = o.change AND p.revision = o.revision AND p.other = o.other AND p.other_revision = o.other_revision
WHERE p.at <= o.at;
