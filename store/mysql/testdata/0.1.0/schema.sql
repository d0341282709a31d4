CREATE TABLE IF NOT EXISTS firn_records (
	`key`   VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
	value   MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'JSON',
	version VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'names one write',
	written BIGINT NOT NULL COMMENT 'microseconds since 1970, UTC'
) ENGINE=InnoDB;

CREATE OR REPLACE SQL SECURITY INVOKER VIEW firn_pools AS
SELECT
	SUBSTRING_INDEX(`key`, '/', -1) AS pool,
	JSON_UNQUOTE(JSON_EXTRACT(value, '$.layout')) AS layout,
	JSON_UNQUOTE(JSON_EXTRACT(value, '$.workers')) AS workers,
	CAST(JSON_EXTRACT(value, '$.floor') AS SIGNED) AS floor,
	TIMESTAMPADD(MICROSECOND, written, '1970-01-01 00:00:00.000000') AS written_utc
FROM firn_records
WHERE `key` REGEXP '^pool/[^/]+$';

CREATE OR REPLACE SQL SECURITY INVOKER VIEW firn_workers AS
SELECT
	SUBSTRING_INDEX(SUBSTRING_INDEX(`key`, '/', 2), '/', -1) AS pool,
	CAST(SUBSTRING_INDEX(`key`, '/', -1) AS UNSIGNED) AS worker,
	JSON_UNQUOTE(JSON_EXTRACT(value, '$.name')) AS name,
	JSON_UNQUOTE(JSON_EXTRACT(value, '$.owner')) AS owner,
	CAST(JSON_EXTRACT(value, '$.term') AS UNSIGNED) AS term,
	TIMESTAMPADD(MICROSECOND, written, '1970-01-01 00:00:00.000000') AS written_utc,
	CAST(JSON_EXTRACT(value, '$.horizon') AS SIGNED) AS horizon
FROM firn_records
WHERE `key` REGEXP '^pool/[^/]+/worker/[0-9]+$';


CREATE OR REPLACE SQL SECURITY INVOKER VIEW firn_sequences AS
SELECT
	SUBSTRING(`key`, 9) AS series,
	CAST(JSON_UNQUOTE(JSON_EXTRACT(value, '$.granted')) AS SIGNED) AS granted,
	CAST(JSON_UNQUOTE(JSON_EXTRACT(value, '$.max')) AS SIGNED) AS max,
	COALESCE(CAST(JSON_EXTRACT(value, '$.increment') AS SIGNED), 1) AS increment,
	CAST(JSON_EXTRACT(value, '$.step') AS SIGNED) AS step,
	COALESCE(JSON_UNQUOTE(JSON_EXTRACT(value, '$.strict')) = 'true', 0) AS strict,
	CAST(JSON_EXTRACT(value, '$.rate') AS DOUBLE) AS rate,
	JSON_UNQUOTE(JSON_EXTRACT(value, '$.by')) AS granted_by,
	JSON_UNQUOTE(JSON_EXTRACT(value, '$.at')) AS granted_at,
	TIMESTAMPADD(MICROSECOND, written, '1970-01-01 00:00:00.000000') AS written_utc
FROM firn_records
WHERE `key` LIKE 'segment/_%';

CREATE OR REPLACE SQL SECURITY INVOKER VIEW firn_documents AS
SELECT
	SUBSTRING_INDEX(SUBSTRING_INDEX(`key`, '/', 2), '/', -1) AS series,
	SUBSTRING_INDEX(`key`, '/', -1) AS period,
	CAST(JSON_UNQUOTE(JSON_EXTRACT(value, '$.count')) AS SIGNED) AS count,
	TIMESTAMPADD(MICROSECOND, written, '1970-01-01 00:00:00.000000') AS written_utc
FROM firn_records
WHERE `key` REGEXP '^serial/[^/]+/[^/]+$';
