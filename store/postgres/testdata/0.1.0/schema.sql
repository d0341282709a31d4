CREATE TABLE IF NOT EXISTS firn_records (
	key     text COLLATE "C" NOT NULL PRIMARY KEY,
	value   text NOT NULL, -- JSON
	version text COLLATE "C" NOT NULL, -- names one write
	written timestamptz NOT NULL
) WITH (fillfactor = 50);

CREATE OR REPLACE VIEW firn_pools AS
SELECT
	substring(key FROM '^pool/([^/]+)$') AS pool,
	value::json ->> 'layout' AS layout,
	value::json ->> 'workers' AS workers,
	(value::json ->> 'floor')::bigint AS floor,
	written
FROM firn_records
WHERE key ~ '^pool/[^/]+$';

CREATE OR REPLACE VIEW firn_workers AS
SELECT
	substring(key FROM '^pool/([^/]+)/') AS pool,
	substring(key FROM '/worker/([0-9]+)$')::bigint AS worker,
	value::json ->> 'name' AS name,
	value::json ->> 'owner' AS owner,
	(value::json ->> 'term')::numeric AS term,
	written,
	(value::json ->> 'horizon')::bigint AS horizon
FROM firn_records
WHERE key ~ '^pool/[^/]+/worker/[0-9]+$';


CREATE OR REPLACE VIEW firn_sequences AS
SELECT
	substring(key FROM '^segment/(.+)$') AS series,
	(value::json ->> 'granted')::bigint AS granted, -- highest number
	(value::json ->> 'max')::bigint AS max,
	coalesce((value::json ->> 'increment')::bigint, 1) AS increment,
	(value::json ->> 'step')::bigint AS step,
	coalesce((value::json ->> 'strict')::boolean, false) AS strict,
	(value::json ->> 'rate')::double precision AS rate, -- in a second
	value::json ->> 'by' AS granted_by,
	(value::json ->> 'at')::timestamptz AS granted_at, -- by the clock of granted_by
	written
FROM firn_records
WHERE key ~ '^segment/.';

CREATE OR REPLACE VIEW firn_documents AS
SELECT
	substring(key FROM '^serial/([^/]+)/') AS series,
	substring(key FROM '/([^/]+)$') AS period,
	(value::json ->> 'count')::bigint AS count, -- last one granted
	written
FROM firn_records
WHERE key ~ '^serial/[^/]+/[^/]+$';
