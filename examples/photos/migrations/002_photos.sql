-- A photo is on the shard of its owner, so its id leads there too.
CREATE TABLE photos (
	id      bigint PRIMARY KEY DEFAULT next_id(),
	owner   bigint NOT NULL REFERENCES users,
	caption text NOT NULL
);
CREATE INDEX photos_of_owner ON photos (owner, id DESC);

-- A like is with the photo; who likes it may be on any shard.
CREATE TABLE likes (
	photo bigint NOT NULL REFERENCES photos,
	liker bigint NOT NULL,
	PRIMARY KEY (photo, liker)
);
