PRAGMA application_id = 1718186606;
PRAGMA user_version = 2;
CREATE TABLE store (id TEXT NOT NULL, writes INTEGER NOT NULL, sums BLOB NOT NULL) STRICT;
CREATE TABLE record (
	key     TEXT NOT NULL PRIMARY KEY,
	value   TEXT NOT NULL,
	version TEXT NOT NULL,
	written INTEGER NOT NULL,
	bucket  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX record_bucket ON record (bucket);
