package open

import (
	"fmt"
	"strings"

	"github.com/firn-id/firn/store/mysql"
	"github.com/firn-id/firn/store/postgres"
	"github.com/firn-id/firn/store/redis"
)

// SetupRole is the role that a [SetupText] makes.
const SetupRole = "firn"

// setups are what an administrator executes to set up a store, by kind. {role} and {password} stand for
// those of the role.
var setups = map[string]func(a *address) string{
	"postgres": func(*address) string { return postgres.SQL() + postgresRole },
	"mysql":    func(*address) string { return mysql.SQL() + mysqlRole },
	"redis":    redisACL,
	"etcd":     etcdRole,
}

const postgresRole = `
CREATE ROLE {role} LOGIN PASSWORD '{password}';
DO $$ BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %I TO {role}', current_schema()); END $$;
GRANT SELECT, INSERT, UPDATE ON firn_records TO {role};
-- Where there are two or more standbys, also: GRANT pg_monitor TO {role};
`

const mysqlRole = `
CREATE USER '{role}'@'%' IDENTIFIED BY '{password}';
GRANT SELECT, INSERT, UPDATE ON firn_records TO '{role}'@'%';
-- On MySQL, to see whether there are replicas, also: GRANT REPLICATION SLAVE ON *.* TO '{role}'@'%';
`

// redisACL is the command that makes a user which may do what firn does with the key of the URL.
func redisACL(a *address) string {
	key, more := redis.DefaultKey, ""
	if hash := a.options["hash"]; hash != "" {
		key = hash
	}
	if strings.Trim(a.path, "/") != "" {
		more += " +select"
	}
	if a.options["cluster"] == "true" || len(a.hosts) > 1 && a.options["master_name"] == "" {
		more += " +cluster|slots"
	}
	if a.options["client_name"] != "" {
		more += " +client|setname"
	}
	return "ACL SETUSER {role} on >{password} resetkeys ~" + key + " resetchannels -@all +eval +hget +hset +hscan +pttl +time +info +config|get" + more + "\n" + redisKept
}

// redisKept says how Redis keeps the user. redis-cli has no comments, and whether the server has an
// ACL file is not known here: ACL SAVE fails without one, and CONFIG REWRITE writes more than users.
const redisKept = `ECHO "The user {role} is in memory only: a restart forgets it, and replicas do not get it. To keep it, on each server: ACL SAVE where redis.conf names an aclfile; where it names none, CONFIG REWRITE, or write the line into redis.conf with user in place of ACL SETUSER."
`

// etcdRole are the commands that make a user which may read and write the keys of the URL.
func etcdRole(a *address) string {
	prefix := "firn/"
	if path := strings.Trim(a.path, "/"); path != "" {
		prefix = path + "/"
	}
	return "etcdctl role add {role}\netcdctl role grant-permission {role} --prefix=true readwrite " + prefix + "\n" +
		"etcdctl user add {role}:{password}\netcdctl user grant-role {role} {role}\n"
}

// SetupKinds are the kinds of stores that have a [SetupText].
func SetupKinds() []string { return []string{"etcd", "mysql", "postgres", "redis"} }

// SetupKind is the kind of a URL, or of the scheme of one: postgres of postgresql://.
func SetupKind(text string) string {
	scheme, _, _ := strings.Cut(text, ":")
	if scheme == "postgresql" {
		return "postgres"
	}
	if plain := strings.TrimSuffix(scheme, "s"); setups[plain] != nil && scheme != "postgres" {
		return plain // with TLS
	}
	return scheme
}

// SetupText returns what an administrator executes once to set up a store: SQL, an ACL command of
// Redis, or commands of etcdctl. It makes tables and views, where the store has such, and the role
// [SetupRole], which has that password and no other rights than firn needs. The store is that of a
// URL, or of the scheme of one with its defaults. The password has letters and digits only.
func SetupText(store, password string) (string, error) {
	kind := SetupKind(store)
	text, ok := setups[kind]
	if !ok {
		return "", &URLError{Redact(store), "there is nothing to print for this kind of store"}
	}
	a := &address{options: map[string]string{}}
	if scheme, rest, ok := strings.Cut(store, ":"); ok {
		var err error
		if a, err = parseAddress(scheme, rest, kinds[scheme]); err != nil {
			return "", &URLError{Redact(store), fmt.Sprint(err)}
		}
	}
	return strings.NewReplacer("{role}", SetupRole, "{password}", password).Replace(text(a)), nil
}
