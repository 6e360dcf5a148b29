-- Which steps one invocation of a tool has verified together.

-- The same for all steps of a group; empty for a step that ran alone.
ALTER TABLE steps {{.OnCluster}} ADD COLUMN IF NOT EXISTS group_id String CODEC(ZSTD(1));
-- The invocation ended without a result for this step; the outcome is aborted then.
ALTER TABLE steps {{.OnCluster}} ADD COLUMN IF NOT EXISTS unreported Bool;
