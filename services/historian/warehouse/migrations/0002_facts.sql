-- What the events say, one row for each thing that they are about. Only events that count are in here. Rows are
-- made so that the same event folded in twice, or two at once, changes nothing: the smallest and largest of
-- values, unions of sets, and, of steps, the first. Read them with FINAL, or through the views.

-- One row for each revision of a change.
CREATE TABLE IF NOT EXISTS changes {{.OnCluster}}
(
    queue            LowCardinality(String),
    change           String,
    revision         UInt64,
    received_at      SimpleAggregateFunction(min, Nullable(DateTime64(6, 'UTC'))),
    admitted_at      SimpleAggregateFunction(min, Nullable(DateTime64(6, 'UTC'))),
    author           SimpleAggregateFunction(max, String),
    team             SimpleAggregateFunction(max, String),
    title            SimpleAggregateFunction(max, String),
    uri              SimpleAggregateFunction(max, String),
    entries          SimpleAggregateFunction(max, Nullable(UInt32)),
    landing_commits  SimpleAggregateFunction(max, Nullable(UInt32)),
    benefit          SimpleAggregateFunction(max, Nullable(Float64)),
    requires         SimpleAggregateFunction(groupUniqArrayArray, Array(String)),
    -- The first analysis that ended.
    analyzed_at      SimpleAggregateFunction(min, Nullable(DateTime64(6, 'UTC'))),
    analyses         SimpleAggregateFunction(groupUniqArrayArray, Array(UInt64)),
    files_changed    SimpleAggregateFunction(max, Nullable(UInt32)),
    lines_added      SimpleAggregateFunction(max, Nullable(UInt32)),
    lines_deleted    SimpleAggregateFunction(max, Nullable(UInt32)),
    targets          SimpleAggregateFunction(max, Nullable(UInt32)),
    affects_all      SimpleAggregateFunction(max, Nullable(UInt8)),
    -- The last decision about it, and the last intention to land it.
    decided_at       SimpleAggregateFunction(max, Nullable(DateTime64(6, 'UTC'))),
    intended_at      SimpleAggregateFunction(max, Nullable(DateTime64(6, 'UTC'))),
    -- A cancellation that came too late stands here too; landed_at, rejected_at and ejected_at win.
    landed_at        SimpleAggregateFunction(min, Nullable(DateTime64(6, 'UTC'))),
    rejected_at      SimpleAggregateFunction(min, Nullable(DateTime64(6, 'UTC'))),
    ejected_at       SimpleAggregateFunction(min, Nullable(DateTime64(6, 'UTC'))),
    cancelled_at     SimpleAggregateFunction(min, Nullable(DateTime64(6, 'UTC'))),
    reason_class     SimpleAggregateFunction(max, String),
    reason_message   SimpleAggregateFunction(max, String),
    -- The last commit of those that landed, and the mainline that they landed on.
    commit           SimpleAggregateFunction(max, String),
    base             SimpleAggregateFunction(max, String),
    -- Changes ahead of it that it landed before.
    bypasses         SimpleAggregateFunction(groupUniqArrayArray, Array(String)),
    -- Offsets in landfall.changes: how often the land guard refused it, how often an intention came to nothing.
    refusals         SimpleAggregateFunction(groupUniqArrayArray, Array(UInt64)),
    voids            SimpleAggregateFunction(groupUniqArrayArray, Array(UInt64))
)
ENGINE = {{engine "AggregatingMergeTree"}}
ORDER BY (queue, change, revision)
SETTINGS {{.Window}};

-- One row for each build that was asked for. A build of the mainline itself has an empty change.
CREATE TABLE IF NOT EXISTS builds {{.OnCluster}}
(
    queue               LowCardinality(String),
    build               String,
    change              SimpleAggregateFunction(max, String),
    revision            SimpleAggregateFunction(max, UInt64),
    base                SimpleAggregateFunction(max, String),
    assumed             SimpleAggregateFunction(groupUniqArrayArray, Array(String)),
    targets             SimpleAggregateFunction(max, Nullable(UInt32)),
    -- The probability that it is needed, and what it was worth, when it was asked for.
    needed              SimpleAggregateFunction(max, Nullable(Float64)),
    value               SimpleAggregateFunction(max, Nullable(Float64)),
    why                 SimpleAggregateFunction(max, String),
    scheduled_at        SimpleAggregateFunction(min, Nullable(DateTime64(6, 'UTC'))),
    prepared_at         SimpleAggregateFunction(min, Nullable(DateTime64(6, 'UTC'))),
    preparation         SimpleAggregateFunction(max, String),
    preparation_seconds SimpleAggregateFunction(min, Nullable(Float64)),
    -- Nothing of it was outstanding any more.
    finished_at         SimpleAggregateFunction(min, Nullable(DateTime64(6, 'UTC'))),
    aborted_at          SimpleAggregateFunction(min, Nullable(DateTime64(6, 'UTC'))),
    abort_why           SimpleAggregateFunction(max, String)
)
ENGINE = {{engine "AggregatingMergeTree"}}
ORDER BY (queue, build)
SETTINGS {{.Window}};

-- One row for each attempt at a target version: the first record of it, which stands.
CREATE TABLE IF NOT EXISTS steps {{.OnCluster}}
(
    queue              LowCardinality(String),
    target             String,
    hash               String,
    attempt            UInt32,
    -- Larger the earlier the record stands in the log.
    precedence         UInt64,
    -- passed, failed, timed_out, aborted, could_not_run
    outcome            LowCardinality(String),
    started_at         DateTime64(6, 'UTC'),
    finished_at        DateTime64(6, 'UTC'),
    seconds            Float64,
    worker             LowCardinality(String),
    -- The build whose tree it ran in; others may have used its result.
    build              String,
    failed_command     String,
    reason             String,
    output_bytes       UInt64,
    command_names      Array(String),
    command_seconds    Array(Float64),
    command_exit_codes Array(Int32)
)
ENGINE = {{engine "ReplacingMergeTree" "precedence"}}
ORDER BY (queue, target, hash, attempt)
SETTINGS {{.Window}};

-- One row for each thing that the selector decided.
CREATE TABLE IF NOT EXISTS decisions {{.OnCluster}}
(
    queue        LowCardinality(String),
    offset       UInt64,
    item         UInt32,
    -- schedule, abort, land, reject, eject
    kind         LowCardinality(String),
    -- Offset in landfall.speculations of what it answers, and the time of that.
    position     UInt64,
    at           DateTime64(6, 'UTC'),
    change       String,
    revision     UInt64,
    build        String,
    decision     String,
    base         String,
    assumed      Array(String),
    targets      Array(String),
    needed       Float64,
    value        Float64,
    bypasses     Array(String),
    reason_class LowCardinality(String),
    why          String
)
ENGINE = {{engine "ReplacingMergeTree"}}
ORDER BY (queue, offset, item)
SETTINGS {{.Window}};

-- One row for each prediction that was made, when it was made.
CREATE TABLE IF NOT EXISTS predictions {{.OnCluster}}
(
    queue          LowCardinality(String),
    offset         UInt64,
    item           UInt32,
    -- success: probability that the change passes alone. duration: seconds of its builds. conflict: probability
    -- that the change is red with the other one.
    kind           LowCardinality(String),
    position       UInt64,
    at             DateTime64(6, 'UTC'),
    change         String,
    revision       UInt64,
    -- conflict: the change ahead.
    other          String,
    other_revision UInt64,
    value          Float64,
    -- duration: standard deviation in seconds.
    std            Float64,
    -- Model and version, or prior.
    source         LowCardinality(String)
)
ENGINE = {{engine "ReplacingMergeTree"}}
ORDER BY (queue, offset, item)
SETTINGS {{.Window}};
