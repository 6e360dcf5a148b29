-- What analysts ask over the whole history, and what makes that quick. Reading a table with FINAL is slow if every insert has
-- rows all over its key, as it has with hashes of versions and ids of builds. So what is asked most is kept a second time, as the
-- log has it: a row for each record, in the order of the log, of which only the newest parts have to be merged while they are
-- read; or as minima and maxima, which no repetition changes. Materialized views fill these tables at each insert. The
-- statements behind them fill in what an older release wrote; they can be repeated.
--
-- Versions are numbers here: cityHash64(queue, target, hash). So are revisions of changes: cityHash64(queue, change, revision).

{{define "runs"}}
SELECT
    queue, toUInt64(18446744073709551615 - precedence) AS offset, target, cityHash64(queue, target, hash) AS version, attempt, outcome,
    started_at, finished_at, seconds, worker, build
FROM steps
{{end}}
{{define "older_runs"}}
SELECT
    queue, offset, tupleElement(step, 'target') AS target, cityHash64(queue, target, tupleElement(step, 'hash')) AS version, tupleElement(step, 'attempt') AS attempt,
    lower(replaceOne(tupleElement(step, 'outcome'), 'STEP_OUTCOME_', '')) AS outcome,
    fromUnixTimestamp64Micro(toInt64OrZero(tupleElement(step, 'started_us')), 'UTC') AS started_at,
    fromUnixTimestamp64Micro(toInt64OrZero(tupleElement(step, 'finished_us')), 'UTC') AS finished_at,
    dateDiff('microsecond', started_at, finished_at) / 1e6 AS seconds, tupleElement(step, 'worker') AS worker, tupleElement(step, 'build') AS build
FROM
(
    SELECT queue, offset, JSONExtract(payload, 'Tuple(target String, hash String, attempt UInt32, outcome String, started_us String, finished_us String, worker String, build String)') AS step
    FROM events
    WHERE topic = 'landfall.builds' AND type = 'StepFinished' AND counts
)
{{end}}
{{define "build_times"}}
SELECT queue, build, started_at AS first_started_at, finished_at AS last_finished_at, toUInt8(outcome != 'passed') AS not_passed
FROM steps
{{end}}
{{define "last_predictions"}}
SELECT queue, kind, change, revision, (offset, item, at, value, std, toString(source)) AS last
FROM predictions
WHERE kind IN ('success', 'duration')
{{end}}
{{define "preparations"}}
SELECT
    queue, offset, build, JSONExtractString(payload, 'change', 'change') AS change,
    toUInt64OrZero(JSONExtractString(payload, 'change', 'revision')) AS revision,
    arrayMap(v -> cityHash64(queue, v.1, v.2), arrayFilter(v -> NOT v.3 AND NOT v.4,
        JSONExtract(payload, 'versions', 'Array(Tuple(target String, hash String, trivial Bool, absent Bool))'))) AS versions
FROM (SELECT queue, offset, payload, JSONExtractString(payload, 'build') AS build FROM events
      WHERE topic = 'landfall.builds' AND type = 'BuildPrepared' AND counts)
{{end}}
{{define "refusals"}}
SELECT
    queue, offset, {{template "stamp"}} AS at, JSONExtractString(payload, 'change', 'change') AS change,
    toUInt64OrZero(JSONExtractString(payload, 'change', 'revision')) AS revision,
    multiIf(JSONHas(payload, 'class'), lower(replaceOne(JSONExtractString(payload, 'class'), 'REASON_CLASS_', '')),
            JSONExtractBool(payload, 'disproved'), 'disproved', JSONLength(payload, 'missing') > 0, 'unproven', 'not_examined') AS cause,
    toUInt32(JSONLength(payload, 'missing')) AS missing, JSONExtractString(payload, 'message') AS message
FROM events
WHERE topic = 'landfall.changes' AND type = 'Refused' AND counts
{{end}}
{{define "failed_versions"}}
SELECT
    queue, offset, toUInt32(item) AS item, {{template "stamp"}} AS at, if(type = 'ChangeRejected', 'rejected', 'ejected') AS outcome,
    JSONExtractString(payload, 'change', 'change') AS change, toUInt64OrZero(JSONExtractString(payload, 'change', 'revision')) AS revision,
    lower(replaceOne(JSONExtractString(payload, 'reason', 'class'), 'REASON_CLASS_', '')) AS reason_class,
    failed.1.1 AS target, cityHash64(queue, failed.1.1, failed.1.2) AS version, failed.2 AS attempt, failed.3 AS step
FROM
(
    SELECT
        queue, offset, time, type, payload,
        JSONExtract(payload, 'reason', 'failed', 'Array(Tuple(version Tuple(target String, hash String), attempt UInt32, step String))') AS list
    FROM events
    WHERE topic = 'landfall.changes' AND type IN ('ChangeRejected', 'ChangeEjected') AND counts
)
ARRAY JOIN list AS failed, arrayEnumerate(list) AS item
{{end}}
{{define "taken_back"}}
SELECT
    queue, offset, toUInt32(item) AS item, {{template "stamp"}} AS at, cityHash64(queue, taken.1.1, taken.1.2) AS version, taken.1.1 AS target,
    taken.2 AS attempt
FROM
(
    SELECT
        queue, offset, time, payload,
        JSONExtract(payload, if(type = 'Refused', 'base_outdated', 'failed'), 'Array(Tuple(version Tuple(target String, hash String), attempt UInt32))') AS list
    FROM events
    WHERE topic = 'landfall.changes' AND type IN ('ChangeRetried', 'Refused') AND counts
)
ARRAY JOIN list AS taken, arrayEnumerate(list) AS item
{{end}}
{{define "queue_pools"}}
SELECT
    queue, offset, {{template "stamp"}} AS at, JSONExtractString(payload, 'delta', 'settings', 'pool') AS pool,
    toUInt32(JSONExtractUInt(payload, 'delta', 'settings', if(pool = '', 'workers', 'pool_workers'))) AS workers
FROM events
WHERE topic = 'landfall.speculations' AND type = 'Speculation' AND counts AND position(payload, '"settings":') > 0 AND JSONHas(payload, 'delta', 'settings')
{{end}}
{{define "stamp"}}if(JSONHas(payload, 'stamp_us'), fromUnixTimestamp64Micro(toInt64OrZero(JSONExtractString(payload, 'stamp_us')), 'UTC'), time){{end}}

-- One row for each record of a finished step. Where two workers ran one attempt, steps has the first, which stands; here are
-- both, for both were busy.
CREATE TABLE IF NOT EXISTS runs {{.OnCluster}}
(
    queue       LowCardinality(String),
    offset      UInt64,
    target      LowCardinality(String),
    version     UInt64,
    attempt     UInt32,
    outcome     LowCardinality(String),
    started_at  DateTime64(6, 'UTC'),
    finished_at DateTime64(6, 'UTC'),
    seconds     Float64,
    worker      LowCardinality(String),
    build       String
)
ENGINE = {{engine "ReplacingMergeTree"}}
ORDER BY (queue, offset)
SETTINGS {{.Window}};

CREATE MATERIALIZED VIEW IF NOT EXISTS runs_of_steps {{.OnCluster}} TO runs AS {{template "runs"}};

-- Of what an older release wrote, steps may have lost the second record of an attempt already.
INSERT INTO runs {{template "older_runs"}};

-- One row for each build that ran steps of its own: when the first began and the last ended, and whether one did not pass.
CREATE TABLE IF NOT EXISTS build_times {{.OnCluster}}
(
    queue            LowCardinality(String),
    build            String,
    first_started_at SimpleAggregateFunction(min, DateTime64(6, 'UTC')),
    last_finished_at SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    not_passed       SimpleAggregateFunction(max, UInt8)
)
ENGINE = {{engine "AggregatingMergeTree"}}
ORDER BY (queue, build)
SETTINGS {{.Window}};

CREATE MATERIALIZED VIEW IF NOT EXISTS build_times_of_steps {{.OnCluster}} TO build_times AS {{template "build_times"}};

INSERT INTO build_times SELECT queue, build, started_at, finished_at, toUInt8(outcome != 'passed') FROM runs;

-- The last prediction of each kind about each revision of a change.
CREATE TABLE IF NOT EXISTS last_predictions {{.OnCluster}}
(
    queue    LowCardinality(String),
    -- success or duration
    kind     LowCardinality(String),
    change   String,
    revision UInt64,
    last     SimpleAggregateFunction(max, Tuple(offset UInt64, item UInt32, at DateTime64(6, 'UTC'), value Float64, std Float64, source String))
)
ENGINE = {{engine "AggregatingMergeTree"}}
ORDER BY (queue, kind, change, revision)
SETTINGS {{.Window}};

CREATE MATERIALIZED VIEW IF NOT EXISTS last_of_predictions {{.OnCluster}} TO last_predictions AS {{template "last_predictions"}};

INSERT INTO last_predictions {{template "last_predictions"}};

-- One row for each tree that was made for a build, with the versions that the build waits for. A build of the mainline
-- itself has an empty change.
CREATE TABLE IF NOT EXISTS preparations {{.OnCluster}}
(
    queue    LowCardinality(String),
    offset   UInt64,
    build    String,
    change   String,
    revision UInt64,
    versions Array(UInt64)
)
ENGINE = {{engine "ReplacingMergeTree"}}
ORDER BY (queue, offset)
SETTINGS {{.Window}};

CREATE MATERIALIZED VIEW IF NOT EXISTS preparations_of_events {{.OnCluster}} TO preparations AS {{template "preparations"}};

INSERT INTO preparations {{template "preparations"}};

-- One row for each refusal of the land guard.
CREATE TABLE IF NOT EXISTS refusals {{.OnCluster}}
(
    queue    LowCardinality(String),
    offset   UInt64,
    at       DateTime64(6, 'UTC'),
    change   String,
    revision UInt64,
    -- merge_conflict, invalid: what would land is at fault. disproved: a version of it is red. unproven: a version of it has no
    -- result yet. not_examined: the queue is paused, the change is held, its commits are gone, a change ahead was refused.
    cause    LowCardinality(String),
    -- How many versions had no result.
    missing  UInt32,
    message  String
)
ENGINE = {{engine "ReplacingMergeTree"}}
ORDER BY (queue, offset)
SETTINGS {{.Window}};

CREATE MATERIALIZED VIEW IF NOT EXISTS refusals_of_events {{.OnCluster}} TO refusals AS {{template "refusals"}};

INSERT INTO refusals {{template "refusals"}};

-- One row for each version that the reason of a rejection or an ejection names.
CREATE TABLE IF NOT EXISTS failed_versions {{.OnCluster}}
(
    queue        LowCardinality(String),
    offset       UInt64,
    item         UInt32,
    at           DateTime64(6, 'UTC'),
    -- rejected or ejected
    outcome      LowCardinality(String),
    change       String,
    revision     UInt64,
    reason_class LowCardinality(String),
    target       LowCardinality(String),
    version      UInt64,
    attempt      UInt32,
    -- The command that did not pass; empty in records of releases that did not name it.
    step         LowCardinality(String)
)
ENGINE = {{engine "ReplacingMergeTree"}}
ORDER BY (queue, offset, item)
SETTINGS {{.Window}};

CREATE MATERIALIZED VIEW IF NOT EXISTS failed_versions_of_events {{.OnCluster}} TO failed_versions AS {{template "failed_versions"}};

INSERT INTO failed_versions {{template "failed_versions"}};

-- One row for each version of which somebody, or the land guard, took back what its attempts had shown, up to one of them.
CREATE TABLE IF NOT EXISTS taken_back {{.OnCluster}}
(
    queue   LowCardinality(String),
    offset  UInt64,
    item    UInt32,
    at      DateTime64(6, 'UTC'),
    version UInt64,
    target  LowCardinality(String),
    attempt UInt32
)
ENGINE = {{engine "ReplacingMergeTree"}}
ORDER BY (queue, offset, item)
SETTINGS {{.Window}};

CREATE MATERIALIZED VIEW IF NOT EXISTS taken_back_of_events {{.OnCluster}} TO taken_back AS {{template "taken_back"}};

INSERT INTO taken_back {{template "taken_back"}};

-- One row for each time that a queue's settings were recorded: whose workers run its steps, and how many they are. Logs of
-- releases without pools have an empty pool and the queue's own workers.
CREATE TABLE IF NOT EXISTS queue_pools {{.OnCluster}}
(
    queue   LowCardinality(String),
    offset  UInt64,
    at      DateTime64(6, 'UTC'),
    pool    LowCardinality(String),
    workers UInt32
)
ENGINE = {{engine "ReplacingMergeTree"}}
ORDER BY (queue, offset)
SETTINGS {{.Window}};

CREATE MATERIALIZED VIEW IF NOT EXISTS queue_pools_of_events {{.OnCluster}} TO queue_pools AS {{template "queue_pools"}};

INSERT INTO queue_pools {{template "queue_pools"}};

-- The runs that show something about their version: they passed or failed, and nobody took that back. A failure of an
-- outage that was retried is none of them, nor what had shown before that.
CREATE OR REPLACE VIEW standing_runs {{.OnCluster}} AS
SELECT r.queue AS queue, r.target AS target, r.version AS version, r.attempt AS attempt, r.outcome AS outcome, r.seconds AS seconds, r.build AS build
FROM (SELECT queue, target, version, attempt, outcome, seconds, build FROM runs FINAL WHERE outcome IN ('passed', 'failed')) AS r
LEFT JOIN (SELECT version, max(attempt) AS last FROM taken_back GROUP BY version) AS t ON t.version = r.version
WHERE r.attempt > t.last;

-- How often a target fails and flakes. A version flaked if one run of it failed and another passed.
CREATE OR REPLACE VIEW target_rates {{.OnCluster}} AS
SELECT
    a.queue AS queue, a.target AS target, a.versions AS versions, a.attempts AS attempts,
    round(f.failed / a.versions, 3) AS failure_rate, round(f.flaked / a.versions, 3) AS flake_rate, round(a.median, 2) AS p50_seconds
FROM
(
    SELECT queue, target, uniqExact(version) AS versions, count() AS attempts, quantileExact(0.5)(seconds) AS median
    FROM standing_runs GROUP BY queue, target
) AS a
LEFT JOIN
(
    SELECT queue, target, countIf(passes = 0) AS failed, countIf(passes > 0) AS flaked
    FROM
    (
        SELECT queue, target, version, countIf(outcome = 'passed') AS passes
        FROM standing_runs WHERE version IN (SELECT version FROM standing_runs WHERE outcome = 'failed')
        GROUP BY queue, target, version
    )
    GROUP BY queue, target
) AS f ON f.queue = a.queue AND f.target = a.target
ORDER BY failure_rate DESC, flake_rate DESC, attempts DESC, queue, target;

-- How the changes of each team end.
CREATE OR REPLACE VIEW team_rates {{.OnCluster}} AS
SELECT
    c.queue AS queue, c.team AS team, count() AS changes,
    round(countIf(c.outcome = 'landed') / count(), 3) AS landed_rate,
    round(countIf(c.outcome = 'rejected') / count(), 3) AS rejected_rate,
    round(countIf(f.flakes > 0) / count(), 3) AS met_a_flake,
    countIf(c.refused > 0) AS refused_by_the_guard
FROM change_outcomes AS c
LEFT JOIN
(
    SELECT b.queue AS queue, b.change AS change, b.revision AS revision, count() AS flakes
    FROM
    (
        SELECT queue, version, groupUniqArray(build) AS ran_in
        FROM standing_runs WHERE version IN (SELECT version FROM standing_runs WHERE outcome = 'failed')
        GROUP BY queue, version
        HAVING countIf(outcome = 'passed') > 0
    ) AS s
    ARRAY JOIN ran_in AS build
    INNER JOIN (SELECT queue, build, max(change) AS change, max(revision) AS revision FROM builds GROUP BY queue, build) AS b
        ON b.queue = s.queue AND b.build = build
    GROUP BY queue, change, revision
) AS f ON f.queue = c.queue AND f.change = c.change AND f.revision = c.revision
WHERE c.outcome IN ('landed', 'rejected', 'ejected')
GROUP BY queue, team
ORDER BY queue, team;

-- Worker time by day and by how the step ended.
CREATE OR REPLACE VIEW worker_hours {{.OnCluster}} AS
SELECT queue, toDate(finished_at) AS day, outcome, count() AS steps, round(sum(seconds) / 3600, 4) AS hours
FROM runs FINAL
GROUP BY queue, day, outcome
ORDER BY queue, day, outcome;

-- How many changes were in the queue, hour by hour: on average over time, and at most. entered and left are changes that came
-- into the queue and ended within the hour. What is still pending counts up to the newest time that the history knows. A
-- change counts for at most ten years, so that a wrong clock does no harm.
CREATE OR REPLACE VIEW depth_by_hour {{.OnCluster}} AS
WITH
    lives AS
    (
        SELECT queue, t0, ended, least(greatest(t0, if(ended, t1, newest)), t0 + 315360000000000) AS t1
        FROM
        (
            SELECT
                queue, toUnixTimestamp64Micro(assumeNotNull(admitted_at)) AS t0, isNotNull(ended_at) AS ended,
                toUnixTimestamp64Micro(ifNull(ended_at, assumeNotNull(admitted_at))) AS t1, max(greatest(t0, t1)) OVER () AS newest
            FROM change_outcomes
        )
    )
SELECT
    h.queue AS queue, fromUnixTimestamp64Micro(h.hour, 'UTC')::DateTime('UTC') AS hour, round(h.lived / 3600e6, 3) AS mean_depth,
    toUInt64(greatest(h.already, m.most)) AS deepest, h.entered AS entered, h.left AS left
FROM
(
    SELECT
        queue, arrayJoin(range(intDiv(t0, 3600000000) * 3600000000, t1 + 1, 3600000000)) AS hour,
        sum(least(t1, hour + 3600000000) - greatest(t0, hour)) AS lived, toInt64(countIf(t0 < hour)) AS already,
        countIf(t0 >= hour) AS entered, countIf(ended AND t1 < hour + 3600000000) AS left
    FROM lives GROUP BY queue, hour
) AS h
LEFT JOIN
(
    SELECT queue, intDiv(t, 3600000000) * 3600000000 AS hour, max(depth) AS most
    FROM (SELECT queue, t, sum(step) OVER (PARTITION BY queue ORDER BY t) AS depth
          FROM (SELECT queue, t0 AS t, 1 AS step FROM lives UNION ALL SELECT queue, t1 AS t, -1 AS step FROM lives))
    GROUP BY queue, hour
) AS m ON m.queue = h.queue AND m.hour = h.hour
ORDER BY queue, hour;

-- How often the land guard refused a decision, and why.
CREATE OR REPLACE VIEW refusals_by_week {{.OnCluster}} AS
SELECT queue, toStartOfWeek(at, 1) AS week, cause, count() AS refusals, uniqExact(change) AS changes
FROM refusals FINAL
GROUP BY queue, week, cause
ORDER BY queue, week, cause;

-- Which targets rejected changes: how many revisions, of how many changes, and when last.
CREATE OR REPLACE VIEW rejections_by_target {{.OnCluster}} AS
SELECT
    queue, target, uniqExact(change, revision) AS rejections, uniqExact(change) AS changes, max(at) AS last_at
FROM failed_versions FINAL
WHERE outcome = 'rejected'
GROUP BY queue, target
ORDER BY rejections DESC, queue, target;

-- The worker time of each change's steps, in seconds. A run is shared out evenly among the revisions whose builds waited for its
-- version, of which the mainline itself may be one. steps is how many versions that ran are among those of its builds.
CREATE OR REPLACE VIEW cost_per_change {{.OnCluster}} AS
SELECT
    c.queue AS queue, c.change AS change, c.revision AS revision, c.author AS author, c.team AS team, c.outcome AS outcome, c.ended_at AS ended_at,
    s.steps AS steps, s.seconds AS seconds
FROM change_outcomes AS c
INNER JOIN
(
    SELECT arrayJoin(sharers) AS sharer, count() AS steps, sum(total / length(sharers)) AS seconds
    FROM
    (
        SELECT version, groupArrayIf(sharer, sharer != 0) AS sharers, sum(seconds) AS total, countIf(sharer = 0) AS ran
        FROM
        (
            SELECT version, toUInt64(0) AS sharer, seconds FROM runs FINAL
            UNION ALL
            SELECT arrayJoin(versions) AS version, sharer, 0 AS seconds
            FROM (SELECT cityHash64(queue, change, revision) AS sharer, groupUniqArrayArray(versions) AS versions FROM preparations GROUP BY sharer)
        )
        GROUP BY version
        HAVING ran > 0
    )
    GROUP BY sharer
) AS s ON s.sharer = cityHash64(c.queue, c.change, c.revision);

-- How busy the workers of each pool were, hour by hour: busy is how many were at work on average over the hour, workers how many
-- the pool had by the newest settings before the hour's end, 0 if that is not known, and used the share. at_work counts the
-- workers that ran something.
CREATE OR REPLACE VIEW utilisation_by_hour {{.OnCluster}} AS
SELECT pool, hour, round(sum(seconds) / 3600, 3) AS busy, max(workers) AS workers,
    round(if(workers = 0, 0, sum(seconds) / 3600 / workers), 3) AS used, uniqExactArray(names) AS at_work
FROM
(
    SELECT h.queue AS queue, h.hour AS hour, h.seconds AS seconds, h.names AS names, p.pool AS pool, p.workers AS workers
    FROM
    (
        SELECT queue, fromUnixTimestamp64Micro(at, 'UTC')::DateTime('UTC') AS hour, fromUnixTimestamp64Micro(at + 3600000000, 'UTC') AS until,
            sum(least(t1, at + 3600000000) - greatest(t0, at)) / 1e6 AS seconds, groupUniqArray(worker) AS names
        FROM
        (
            SELECT queue, worker, toUnixTimestamp64Micro(started_at) AS t0, least(toUnixTimestamp64Micro(finished_at), t0 + 31536000000000) AS t1,
                arrayJoin(range(intDiv(t0, 3600000000) * 3600000000, t1, 3600000000)) AS at
            FROM runs FINAL
        )
        GROUP BY queue, at
    ) AS h
    ASOF LEFT JOIN (SELECT queue, at, pool, workers FROM queue_pools FINAL) AS p ON p.queue = h.queue AND h.until > p.at
)
GROUP BY pool, hour
ORDER BY pool, hour;

-- What each landed change waited for, in seconds. The parts are never negative and add up to total: a part begins where the one
-- before it ended, however the clocks of machines differ. admission: until it was in the queue. analysis: until it was analysed.
-- worker: until the first step of one of its builds began. building: until the last of its builds before the decision ended.
-- behind: until it was decided, which waits for changes ahead. push: until it had landed.
CREATE OR REPLACE VIEW time_to_land {{.OnCluster}} AS
WITH
    assumeNotNull(least(ifNull(received_at, admitted_at), admitted_at)) AS t0,
    greatest(t0, assumeNotNull(ended_at)) AS t6,
    least(greatest(t0, assumeNotNull(admitted_at)), t6) AS t1,
    least(greatest(t1, ifNull(analyzed_at, t1)), t6) AS t2,
    least(greatest(t2, if(b.ran, b.started, t2)), t6) AS t3,
    least(greatest(t3, if(b.ended, b.finished, t3)), t6) AS t4,
    least(greatest(t4, ifNull(decided_at, t4)), t6) AS t5
SELECT
    c.queue AS queue, c.change AS change, c.revision AS revision, c.team AS team, t6 AS landed_at,
    dateDiff('microsecond', t0, t6) / 1e6 AS total,
    dateDiff('microsecond', t0, t1) / 1e6 AS admission,
    dateDiff('microsecond', t1, t2) / 1e6 AS analysis,
    dateDiff('microsecond', t2, t3) / 1e6 AS worker,
    dateDiff('microsecond', t3, t4) / 1e6 AS building,
    dateDiff('microsecond', t4, t5) / 1e6 AS behind,
    dateDiff('microsecond', t5, t6) / 1e6 AS push
FROM (SELECT * FROM change_outcomes WHERE outcome = 'landed') AS c
LEFT JOIN
(
    SELECT
        b.queue AS queue, b.change AS change, b.revision AS revision,
        max(r.there) AS ran, minIf(r.began, r.there) AS started,
        max(b.over AND b.at <= d.decided) AS ended, maxIf(b.at, b.over AND b.at <= d.decided) AS finished
    FROM
    (
        SELECT queue, build, max(change) AS change, max(revision) AS revision, isNotNull(min(finished_at)) AS over, assumeNotNull(min(finished_at)) AS at
        FROM builds GROUP BY queue, build
    ) AS b
    INNER JOIN (SELECT queue, change, revision, ifNull(decided_at, assumeNotNull(ended_at)) AS decided FROM change_outcomes WHERE outcome = 'landed') AS d
        ON d.queue = b.queue AND d.change = b.change AND d.revision = b.revision
    LEFT JOIN (SELECT queue, build, min(first_started_at) AS began, 1 AS there FROM build_times GROUP BY queue, build) AS r
        ON r.queue = b.queue AND r.build = b.build
    GROUP BY queue, change, revision
) AS b ON b.queue = c.queue AND b.change = c.change AND b.revision = c.revision;

-- Seconds to land by week. mean is the sum of the parts, which time_to_land explains.
CREATE OR REPLACE VIEW waits_by_week {{.OnCluster}} AS
SELECT
    queue, toStartOfWeek(landed_at, 1) AS week, count() AS landed,
    round(quantileExact(0.5)(total), 1) AS p50, round(quantileExact(0.9)(total), 1) AS p90, round(max(total), 1) AS longest,
    round(avg(total), 3) AS mean, round(avg(admission), 3) AS admission, round(avg(analysis), 3) AS analysis, round(avg(worker), 3) AS worker,
    round(avg(building), 3) AS building, round(avg(behind), 3) AS behind, round(avg(push), 3) AS push
FROM time_to_land
GROUP BY queue, week
ORDER BY queue, week;

-- The last prediction of each kind about each change that ended, with what came true. actual is 1 or 0 (it landed; it was
-- rejected for what it did itself), or the seconds of its builds. What was cancelled, ejected or revised says nothing about
-- success; builds of which a step did not pass say nothing about duration.
CREATE OR REPLACE VIEW prediction_outcomes {{.OnCluster}} AS
SELECT
    p.queue AS queue, 'success' AS kind, p.change AS change, p.revision AS revision, tupleElement(p.l, 'at') AS at, tupleElement(p.l, 'source') AS source,
    tupleElement(p.l, 'value') AS predicted, tupleElement(p.l, 'std') AS std, toFloat64(c.outcome = 'landed') AS actual, assumeNotNull(c.ended_at) AS ended_at
FROM (SELECT queue, change, revision, max(last) AS l FROM last_predictions WHERE kind = 'success' GROUP BY queue, change, revision) AS p
INNER JOIN (SELECT queue, change, revision, outcome, reason_class, ended_at FROM change_outcomes) AS c
    ON c.queue = p.queue AND c.change = p.change AND c.revision = p.revision
WHERE c.outcome = 'landed' OR c.outcome = 'rejected' AND c.reason_class IN ('step_failed', 'invalid')
UNION ALL
SELECT
    p.queue AS queue, 'duration' AS kind, p.change AS change, p.revision AS revision, tupleElement(p.l, 'at') AS at, tupleElement(p.l, 'source') AS source,
    tupleElement(p.l, 'value') AS predicted, tupleElement(p.l, 'std') AS std, d.seconds AS actual, assumeNotNull(c.ended_at) AS ended_at
FROM (SELECT queue, change, revision, max(last) AS l FROM last_predictions WHERE kind = 'duration' GROUP BY queue, change, revision) AS p
INNER JOIN (SELECT queue, change, revision, ended_at FROM change_outcomes WHERE isNotNull(ended_at)) AS c
    ON c.queue = p.queue AND c.change = p.change AND c.revision = p.revision
INNER JOIN
(
    SELECT b.queue AS queue, b.change AS change, b.revision AS revision, avg(r.seconds) AS seconds
    FROM
    (
        SELECT queue, build, max(change) AS change, max(revision) AS revision
        FROM builds GROUP BY queue, build HAVING isNull(min(aborted_at)) AND change != ''
    ) AS b
    INNER JOIN
    (
        SELECT queue, build, dateDiff('microsecond', min(first_started_at), max(last_finished_at)) / 1e6 AS seconds
        FROM build_times GROUP BY queue, build HAVING max(not_passed) = 0
    ) AS r ON r.queue = b.queue AND r.build = b.build
    GROUP BY queue, change, revision
) AS d ON d.queue = p.queue AND d.change = p.change AND d.revision = p.revision;

-- How right predictions were, by the week in which the changes ended. Of success: brier is the mean square of how far the
-- probability was from what came true, calibration_error how far predicted and true rates of each tenth differ, on average over
-- the changes. Of duration (durations counts the changes): covered is the share within the 90 % interval of a normal distribution.
CREATE OR REPLACE VIEW accuracy_by_week {{.OnCluster}} AS
SELECT
    queue, week, sumIf(n, kind = 'success') AS changes, round(sumIf(predictions, kind = 'success') / changes, 3) AS predicted_rate,
    round(sumIf(actuals, kind = 'success') / changes, 3) AS landed_rate, round(sumIf(squares, kind = 'success') / changes, 4) AS brier,
    round(sumIf(abs(predictions - actuals), kind = 'success') / changes, 4) AS calibration_error,
    sumIf(n, kind = 'duration') AS durations, round(sumIf(predictions, kind = 'duration') / durations, 3) AS predicted_seconds,
    round(sumIf(actuals, kind = 'duration') / durations, 3) AS mean_seconds, round(sumIf(errors, kind = 'duration') / durations, 3) AS mean_error,
    round(sumIf(within, kind = 'duration') / durations, 3) AS covered
FROM
(
    SELECT
        queue, toStartOfWeek(ended_at, 1) AS week, kind, if(kind = 'success', least(floor(predicted * 10), 9), 0) AS tenth,
        count() AS n, sum(predicted) AS predictions, sum(actual) AS actuals, sum(pow(predicted - actual, 2)) AS squares,
        sum(abs(predicted - actual)) AS errors, countIf(abs(predicted - actual) <= 1.6449 * std) AS within
    FROM prediction_outcomes
    GROUP BY queue, week, kind, tenth
)
GROUP BY queue, week
ORDER BY queue, week
