// Package variable knows the FIRN_ variables: which ones firn reads, and which ones others set.
package variable

import (
	"os"
	"regexp"
	"strings"
)

// A Variable is a FIRN_ variable. It says what a flag of that name says, where the flag is not
// given.
type Variable struct {
	Key   string // the flag, and the setting if it is one
	About string // what it says, for help
}

// Prefix is how the name of each variable begins.
const Prefix = "FIRN_"

// Name is what the variable of a setting or flag is called, if it has one.
func Name(key string) string {
	return Prefix + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
}

// Name is what the variable is called.
func (v Variable) Name() string { return Name(v.Key) }

// IsSetting reports whether it says a setting, and not something about one command.
func (v Variable) IsSetting() bool {
	switch v.Key {
	case "json", "keys", "server", "address", "db":
		return false
	}
	return true
}

// All are all variables that firn reads. A setting is here only if it describes where
// firn runs and means the same wherever it is read. What a person claims or confirms (--new,
// --yes, --write, ...) is not: a variable that somebody has set on another day cannot vouch for
// anything. FIRN_WORKER is not either: it is what firn run tells its command.
var All = []Variable{
	{"config", "the config"},
	{"json", "print JSON"},
	{"store", "where records are kept"},
	{"pool", "the pool"},
	{"layout", "the layout of the ids"},
	{"lanes", "how many workers to hold"},
	{"renew", "how often the lease is extended"},
	{"ttl", "when others may take the worker"},
	{"outage", "how long ids continue without the store"},
	{"max-ahead", "how far ids may run ahead of the clock"},
	{"wait", "how long to wait for a worker"},
	{"grant-file", "the grant file"},
	{"keys", "the keys of public forms"},
	{"resp", "where the server listens for the Redis protocol"},
	{"http", "where the server listens for HTTP"},
	{"admin", "where the server shows metrics and probes"},
	{"names", "what clients and proxies call the server"},
	{"server", "servers with shards, NAME=URL with a space between them"},
	{"address", "how servers with shards reach each other, SERVER=URL"},
	{"db", "the other system's database"},
}

// ofKubernetes is what Kubernetes tells each pod of services called firn and firn-X.
var ofKubernetes = regexp.MustCompile(`^FIRN_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// OfKubernetes reports whether Kubernetes sets a variable of that name for a service.
func OfKubernetes(name string) bool { return ofKubernetes.MatchString(name) }

// SetMistyped is the first variable of the environment that may name a store, and that firn does
// not read, or "".
func SetMistyped() string {
	for _, one := range os.Environ() {
		if name, _, _ := strings.Cut(one, "="); MistypedStore(name) {
			return name
		}
	}
	return ""
}

// MistypedStore reports whether a name is one that somebody gives to a variable who means
// FIRN_STORE, such as FIRN_STORE_URL.
func MistypedStore(name string) bool {
	store := Name("store")
	return strings.HasPrefix(name, store) && name != store && !OfKubernetes(name)
}
