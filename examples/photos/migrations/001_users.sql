-- A user is on the shard of their name, with all that is theirs.
CREATE TABLE users (
	id   bigint PRIMARY KEY DEFAULT next_id(),
	name text NOT NULL UNIQUE
);

-- Whom they follow may be on any shard: the id says on which.
CREATE TABLE follows (
	follower bigint NOT NULL REFERENCES users,
	followed bigint NOT NULL,
	PRIMARY KEY (follower, followed)
);
