-- The questions that people ask. Each view reads with FINAL, so that nothing is counted twice.

-- Each revision of a change with how it ended.
CREATE OR REPLACE VIEW change_outcomes {{.OnCluster}} AS
SELECT
    queue, change, revision, author, team, title, files_changed, lines_added, lines_deleted, targets, affects_all,
    received_at, admitted_at, analyzed_at, decided_at, intended_at,
    multiIf(isNotNull(landed_at), 'landed', isNotNull(rejected_at), 'rejected', isNotNull(ejected_at), 'ejected',
            isNotNull(cancelled_at), 'cancelled', isNotNull(revised_at), 'revised', 'pending') AS outcome,
    multiIf(isNotNull(landed_at), landed_at, isNotNull(rejected_at), rejected_at, isNotNull(ejected_at), ejected_at,
            isNotNull(cancelled_at), cancelled_at, revised_at) AS ended_at,
    reason_class, reason_message, commit, base, bypasses, length(refusals) AS refused, length(voids) AS voided
FROM
(
    -- The next revision ends the one before it.
    SELECT *, min(admitted_at) OVER (PARTITION BY queue, change ORDER BY revision ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS revised_at
    FROM changes FINAL
    WHERE isNotNull(admitted_at)
);

-- What each landed change waited for, in seconds. The parts are never negative and add up to total: a part begins
-- where the one before it ended, however the clocks of machines differ.
CREATE OR REPLACE VIEW time_to_land {{.OnCluster}} AS
WITH
    assumeNotNull(least(ifNull(received_at, admitted_at), admitted_at)) AS t0,
    least(greatest(t0, assumeNotNull(admitted_at)), t5) AS t1,
    least(greatest(t1, ifNull(analyzed_at, t1)), t5) AS t2,
    least(greatest(t2, ifNull(first_build_at, t2)), t5) AS t3,
    least(greatest(t3, ifNull(decided_at, t3)), t5) AS t4,
    greatest(t0, assumeNotNull(ended_at)) AS t5
SELECT
    c.queue AS queue, c.change AS change, c.revision AS revision, c.team AS team, t5 AS landed_at,
    dateDiff('millisecond', t0, t5) / 1000 AS total,
    dateDiff('millisecond', t0, t1) / 1000 AS admission,
    dateDiff('millisecond', t1, t2) / 1000 AS analysis,
    dateDiff('millisecond', t2, t3) / 1000 AS waiting,
    dateDiff('millisecond', t3, t4) / 1000 AS building,
    dateDiff('millisecond', t4, t5) / 1000 AS landing
FROM change_outcomes AS c
LEFT JOIN
(
    SELECT queue, change, revision, min(scheduled_at) AS first_build_at
    FROM builds FINAL GROUP BY queue, change, revision
) AS b ON b.queue = c.queue AND b.change = c.change AND b.revision = c.revision
WHERE outcome = 'landed';

-- Seconds to land by week.
CREATE OR REPLACE VIEW waits_by_week {{.OnCluster}} AS
SELECT
    queue, toStartOfWeek(landed_at, 1) AS week, count() AS landed,
    round(quantileExact(0.5)(total), 1) AS p50, round(quantileExact(0.9)(total), 1) AS p90, round(max(total), 1) AS longest,
    round(avg(analysis), 1) AS analysis, round(avg(waiting), 1) AS waiting, round(avg(building), 1) AS building, round(avg(landing), 1) AS landing
FROM time_to_land
GROUP BY queue, week
ORDER BY queue, week;

-- How many builds a change took, by week of its end.
CREATE OR REPLACE VIEW builds_per_change {{.OnCluster}} AS
SELECT
    queue, toStartOfWeek(ended_at, 1) AS week, count() AS changes, sum(n) AS builds, sum(n_aborted) AS aborted,
    round(sum(n) / count(), 2) AS per_change, max(n) AS most
FROM
(
    SELECT c.queue AS queue, assumeNotNull(c.ended_at) AS ended_at, b.builds AS n, b.aborted AS n_aborted
    FROM (SELECT queue, change, revision, ended_at FROM change_outcomes WHERE outcome IN ('landed', 'rejected', 'ejected')) AS c
    LEFT JOIN
    (
        SELECT queue, change, revision, count() AS builds, countIf(isNotNull(aborted_at)) AS aborted
        FROM builds FINAL WHERE isNotNull(scheduled_at) GROUP BY queue, change, revision
    ) AS b ON b.queue = c.queue AND b.change = c.change AND b.revision = c.revision
)
GROUP BY queue, week
ORDER BY queue, week;

-- How many landed before one that was ahead of them, by week.
CREATE OR REPLACE VIEW bypass_rate {{.OnCluster}} AS
SELECT
    queue, toStartOfWeek(assumeNotNull(ended_at), 1) AS week, count() AS landed, countIf(notEmpty(bypasses)) AS bypassing,
    round(countIf(notEmpty(bypasses)) / count(), 3) AS rate
FROM change_outcomes
WHERE outcome = 'landed'
GROUP BY queue, week
ORDER BY queue, week;

-- Worker time by day and by how the step ended.
CREATE OR REPLACE VIEW worker_hours {{.OnCluster}} AS
SELECT queue, toDate(finished_at) AS day, outcome, count() AS steps, round(sum(seconds) / 3600, 4) AS hours
FROM steps FINAL
GROUP BY queue, day, outcome
ORDER BY queue, day, outcome;

-- How often a target fails and flakes. A version flaked if one attempt at it failed and another passed.
CREATE OR REPLACE VIEW target_rates {{.OnCluster}} AS
SELECT
    queue, target, count() AS versions, sum(runs) AS attempts,
    round(countIf(failures > 0 AND passes = 0) / count(), 3) AS failure_rate,
    round(countIf(failures > 0 AND passes > 0) / count(), 3) AS flake_rate,
    round(quantileExact(0.5)(median), 2) AS p50_seconds
FROM
(
    SELECT
        queue, target, hash, count() AS runs, countIf(outcome = 'passed') AS passes, countIf(outcome = 'failed') AS failures,
        quantileExact(0.5)(seconds) AS median
    FROM steps FINAL
    WHERE outcome IN ('passed', 'failed')
    GROUP BY queue, target, hash
)
GROUP BY queue, target
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
        SELECT queue, target, hash, groupUniqArray(build) AS ran_in
        FROM steps FINAL GROUP BY queue, target, hash
        HAVING countIf(outcome = 'passed') > 0 AND countIf(outcome = 'failed') > 0
    ) AS s
    ARRAY JOIN ran_in AS build
    INNER JOIN (SELECT queue, build, change, revision FROM builds FINAL) AS b ON b.queue = s.queue AND b.build = build
    GROUP BY queue, change, revision
) AS f ON f.queue = c.queue AND f.change = c.change AND f.revision = c.revision
WHERE c.outcome IN ('landed', 'rejected', 'ejected')
GROUP BY queue, team
ORDER BY queue, team;

-- Each prediction that a decision rested on, with what came true: the last one of its kind made before the change
-- ended. actual is 1 or 0 (it landed; it was rejected for what it did itself), or the seconds of its builds. What
-- was cancelled, ejected or revised says nothing about success; builds that did not pass say nothing about duration.
CREATE OR REPLACE VIEW prediction_outcomes {{.OnCluster}} AS
WITH
    last AS
    (
        SELECT
            p.queue AS queue, p.kind AS kind, p.change AS change, p.revision AS revision, c.outcome AS outcome, c.reason_class AS reason_class,
            argMax(p.value, p.offset) AS predicted, argMax(p.std, p.offset) AS std, argMax(p.source, p.offset) AS source, max(p.at) AS at
        FROM (SELECT * FROM predictions FINAL WHERE kind IN ('success', 'duration')) AS p
        INNER JOIN change_outcomes AS c ON c.queue = p.queue AND c.change = p.change AND c.revision = p.revision
        WHERE isNotNull(c.ended_at) AND p.at <= assumeNotNull(c.ended_at)
        GROUP BY queue, kind, change, revision, outcome, reason_class
    ),
    durations AS
    (
        SELECT b.queue AS queue, b.change AS change, b.revision AS revision,
               avg(dateDiff('millisecond', s.started, s.finished) / 1000) AS seconds
        FROM (SELECT queue, build, change, revision FROM builds FINAL WHERE isNull(aborted_at) AND change != '') AS b
        INNER JOIN
        (
            SELECT queue, build, min(started_at) AS started, max(finished_at) AS finished
            FROM steps FINAL GROUP BY queue, build HAVING countIf(outcome != 'passed') = 0
        ) AS s ON s.queue = b.queue AND s.build = b.build
        GROUP BY queue, change, revision
    )
SELECT queue, kind, change, revision, at, source, predicted, std, toFloat64(outcome = 'landed') AS actual
FROM last
WHERE kind = 'success' AND (outcome = 'landed' OR outcome = 'rejected' AND reason_class IN ('step_failed', 'invalid'))
UNION ALL
SELECT l.queue, l.kind, l.change, l.revision, l.at, l.source, l.predicted, l.std, d.seconds AS actual
FROM last AS l
INNER JOIN durations AS d ON d.queue = l.queue AND d.change = l.change AND d.revision = l.revision
WHERE l.kind = 'duration';

-- Of success predictions, in tenths: how often what was predicted came true.
CREATE OR REPLACE VIEW success_calibration {{.OnCluster}} AS
SELECT
    queue, source, least(floor(predicted * 10), 9) / 10 AS from_probability, count() AS changes,
    round(avg(predicted), 3) AS predicted_rate, round(avg(actual), 3) AS landed_rate,
    round(avg(pow(predicted - actual, 2)), 4) AS brier
FROM prediction_outcomes
WHERE kind = 'success'
GROUP BY queue, source, from_probability
ORDER BY queue, source, from_probability;

-- How far predicted durations are off, by where they came from. covered is the share within the 90 % interval of a
-- normal distribution.
CREATE OR REPLACE VIEW duration_error {{.OnCluster}} AS
SELECT
    queue, source, count() AS changes, round(avg(actual), 2) AS mean_seconds, round(avg(abs(predicted - actual)), 2) AS mean_error,
    round(avg(abs(predicted - actual) / actual), 3) AS mape,
    round(countIf(abs(predicted - actual) <= 1.6449 * std) / count(), 3) AS covered
FROM prediction_outcomes
WHERE kind = 'duration' AND actual > 0
GROUP BY queue, source
ORDER BY queue, source;
