-- Who had what done: a row for each thing that a person or a program asked for, also where it was refused. who is the subject that
-- issuer vouches for, token the id of the token that was presented, role that by which it was allowed. Records of earlier releases, and
-- those that a service wrote by itself, have nobody. Tokens themselves, and deliveries that were sent again, are in the log alone.
CREATE OR REPLACE VIEW who_did_what {{.OnCluster}} AS
SELECT
    at, queue, what, change, JSONExtractString(actor, 'name') AS name, JSONExtractString(actor, 'role') AS role, JSONExtractString(actor, 'issuer') AS issuer,
    JSONExtractString(actor, 'subject') AS who, JSONExtractString(actor, 'token') AS token, JSONExtractString(actor, 'client') AS client, why
FROM
(
    SELECT
        time AS at, queue, type AS what, subject AS change,
        JSONExtractString(payload, if(type = 'RequestRefused', 'message', 'why')) AS why,
        if(JSONHas(payload, 'admission'), JSONExtractRaw(payload, 'admission', 'actor'), JSONExtractRaw(payload, 'actor')) AS actor
    FROM events FINAL
    WHERE counts AND topic IN ('landfall.changes', 'landfall.models', 'landfall.dead-letters') AND position(payload, '"actor"') > 0
)
WHERE actor != ''
ORDER BY at
