package mutants

// adapters are rules of the contract that stores keep, which the checks of store/storetest find: a Put is
// carried out if the record is as its condition says, at the instant of the write.
var adapters = []Mutant{
	{Name: "a version repeats", File: "store/store.go", Old: "	rand.Read(b[:])\n", New: "	rand.Read(b[:1])\n", Package: "./store", Tests: "^TestNewVersion$"},
	{Name: "a record in a SQLite file is replaced whatever its version", File: "store/sqlite/sqlite.go", Old: "	if old.Version != cond.Version {\n", New: "	if old.Version == \"\" && cond.Version != \"\" {\n", Package: "./store/sqlite", Tests: "^TestContract$/^old_version$"},
	{Name: "a record in a SQLite file is replaced however old it is", File: "store/sqlite/sqlite.go", Old: "now.Sub(old.Written) > cond.Within", New: "now.Sub(old.Written) < 0", Package: "./store/sqlite", Tests: "^TestContract$/^within"},
	{Name: "a record in PostgreSQL is replaced whatever its version", File: "store/postgres/postgres.go", Old: "WHERE r.key = $1 AND locked.version = $4\n", New: "WHERE r.key = $1 AND $4::text IS NOT NULL\n", Package: "./store/postgres", Tests: "^TestContract$/^old_version$"},
	{Name: "a record in PostgreSQL is replaced however old it is", File: "store/postgres/postgres.go", Old: "	AND ($5::bigint < 0 OR locked.written >= clock_timestamp() - $5::bigint * interval '1 microsecond')\n", New: "	AND $5::bigint IS NOT NULL\n", Package: "./store/postgres", Tests: "^TestContract$/^within"},
	{Name: "a record in PostgreSQL is made twice", File: "store/postgres/postgres.go", Old: "ON CONFLICT (key) DO NOTHING\n", New: "ON CONFLICT (key) DO UPDATE SET value = excluded.value, version = excluded.version\n", Package: "./store/postgres", Tests: "^TestContract$/^create_only_once$"},
	{Name: "a standby of PostgreSQL is read", File: "store/postgres/postgres.go", Old: "		if standby {\n", New: "		if standby && false {\n", Package: "./store/postgres", Tests: "^TestStandby"},
	{Name: "a record in Redis is replaced whatever its version", File: "store/redis/script.go", Old: "if version ~= ARGV[2] then return 'conflict' end\n", New: "if version == '' and ARGV[2] ~= '' then return 'conflict' end\n", Package: "./store/redis", Tests: "^TestContract$/^old_version$"},
	{Name: "a record in Redis is replaced however old it is", File: "store/redis/script.go", Old: "tonumber(now) - tonumber(written) > tonumber(ARGV[3])) then", New: "false) then", Package: "./store/redis", Tests: "^TestContract$/^within"},
	{Name: "a record in MySQL is replaced however old it is", File: "store/mysql/mysql.go", Old: "	if cond.Within != 0 {\n		q +=", New: "	if false {\n		q +=", Package: "./store/mysql", Tests: "^TestContract$/^within"},
}
