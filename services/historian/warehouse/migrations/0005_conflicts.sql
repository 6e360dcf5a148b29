-- Were the predictions of conflicts right? For those of success and duration see prediction_outcomes.

-- Each pair of which it came to light whether it breaks, with the last prediction of it before that.
CREATE OR REPLACE VIEW conflict_outcomes {{.OnCluster}} AS
SELECT
    o.queue AS queue, o.change AS change, o.revision AS revision, o.other AS other, o.other_revision AS other_revision,
    p.at AS at, o.at AS ended_at, p.source AS source, p.value AS predicted, toFloat64(o.conflict) AS actual
FROM (SELECT * FROM observations FINAL) AS o
ASOF INNER JOIN
(
    SELECT queue, change, revision, other, other_revision, offset, at, source, value
    FROM predictions FINAL WHERE kind = 'conflict'
) AS p ON p.queue = o.queue AND p.change = o.change AND p.revision = o.revision AND p.other = o.other AND p.other_revision = o.other_revision AND p.offset < o.offset;

-- Of conflict predictions, in tenths: how often what was predicted came true.
CREATE OR REPLACE VIEW conflict_calibration {{.OnCluster}} AS
SELECT
    queue, source, least(floor(predicted * 10), 9) / 10 AS from_probability, count() AS pairs,
    round(avg(predicted), 3) AS predicted_rate, round(avg(actual), 3) AS broken_rate,
    round(avg(pow(predicted - actual, 2)), 4) AS brier
FROM conflict_outcomes
GROUP BY queue, source, from_probability
ORDER BY queue, source, from_probability;
