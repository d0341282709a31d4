package repotest

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// A rule says what a package may import besides the standard library. Test files
// are free.
type rule struct {
	pkg   string   // below the module; the pattern of path.Match
	ours  []string // packages of this module, as patterns
	third []string // module path prefixes of other people's
}

// The arrows. The first rule that matches a package is its rule; a package
// without one fails the test, so that a new package is thought about here.
var arrows = []rule{
	{pkg: ".", ours: []string{"internal/nearest"}},
	{pkg: "store"},
	{pkg: "store/memory", ours: []string{"store"}},
	{pkg: "store/storetest", ours: []string{"store"}, third: []string{"github.com/anishathalye/porcupine"}},
	{pkg: "store/sqlite", ours: []string{"store", "store/internal/advice", "internal/configfile", "internal/phrase", "internal/variable"}, third: []string{"modernc.org/sqlite", "golang.org/x/sys/"}},
	{pkg: "store/internal/advice", ours: []string{"store"}},
	{pkg: "store/internal/table", ours: []string{"store", "store/internal/advice"}},
	// Only the tests of the two adapters import it. It runs whole series on their tables.
	{pkg: "store/internal/table/tabletest", ours: []string{"store", "store/internal/table", "sequence", "document", "internal/testserver"}},
	{pkg: "store/postgres", ours: []string{"store", "store/internal/table", "internal/trouble"}},
	{pkg: "store/mysql", ours: []string{"store", "store/internal/table", "internal/trouble"}, third: []string{"github.com/go-sql-driver/mysql"}},
	{pkg: "store/redis", ours: []string{"store", "store/internal/advice"}, third: []string{"github.com/redis/go-redis/v9"}},
	{pkg: "store/etcd", ours: []string{"store", "store/internal/advice"}, third: []string{"go.etcd.io/etcd/", "google.golang.org/grpc"}},
	{pkg: "store/zookeeper", ours: []string{"store", "store/internal/advice"}, third: []string{"github.com/go-zookeeper/zk"}},
	{pkg: "store/open", ours: []string{"store", "store/*", "internal/nearest", "internal/shortfile"}, third: []string{""}},

	{pkg: "pool", ours: []string{".", "store", "internal/term", "internal/record"}},
	// A lease is of a pool, whose name, default and errors package pool declares.
	{pkg: "lease", ours: []string{".", "store", "internal/term", "internal/holder", "internal/grantfile", "internal/opening", "internal/pagefile", "internal/version", "pool"}},
	// It puts a mapped file in the place of a lease's generator; lease knows of it only what internal/pagefile declares.
	{pkg: "page", ours: []string{".", "lease", "store", "internal/pagefile"}, third: []string{"golang.org/x/sys/"}},
	// What firn agent does: leases and pages, with metrics.
	{pkg: "internal/pageagent", ours: []string{".", "lease", "page", "store", "internal/pagefile"}, third: []string{"github.com/prometheus/", "github.com/coreos/go-systemd/"}},
	// Tests only: the clients in other languages.
	{pkg: "clients"},
	{pkg: "clients/*"},
	{pkg: "clients/internal/clienttest", ours: []string{".", "lease", "page", "store", "store/sqlite", "internal/testserver", "internal/version"}},
	{pkg: "sequence", ours: []string{".", "store", "internal/block", "internal/record", "internal/supply", "internal/nearest"}},
	{pkg: "document", ours: []string{".", "store", "internal/dated", "internal/nearest", "internal/record", "internal/template"}},
	{pkg: "plan", ours: []string{"."}},
	{pkg: "inspect", ours: []string{"."}},
	{pkg: "verify", ours: []string{"."}, third: []string{"github.com/RoaringBitmap/roaring/v2"}},
	{pkg: "public", ours: []string{"."}},
	{pkg: "public/hashids", ours: []string{".", "public"}, third: []string{"github.com/speps/go-hashids/v2"}},
	{pkg: "public/sqids", ours: []string{".", "public"}, third: []string{"github.com/sqids/sqids-go"}},
	{pkg: "shard/topology", ours: []string{".", "internal/phrase", "internal/trouble"}, third: []string{"github.com/jackc/pgx/v5"}},
	{pkg: "shard", ours: []string{".", "shard/topology", "internal/trouble"}, third: []string{"github.com/jackc/pgx/v5", "golang.org/x/sync/"}},
	{pkg: "shard/install", ours: []string{".", "shard/topology"}, third: []string{"github.com/jackc/pgx/v5"}},
	{pkg: "shard/internal/atonce"},
	{pkg: "shard/check", ours: []string{".", "shard/topology", "internal/phrase"}, third: []string{"github.com/jackc/pgx/v5", "golang.org/x/sync/"}},
	{pkg: "shard/setup", ours: []string{".", "shard/topology", "shard/install", "shard/check", "shard/internal/atonce"}, third: []string{"github.com/jackc/pgx/v5", "golang.org/x/sync/"}},
	{pkg: "shard/migrate", ours: []string{"shard/topology", "shard/check"}, third: []string{"github.com/jackc/pgx/v5", "golang.org/x/sync/"}},
	{pkg: "shard/move", ours: []string{"shard/topology", "shard/install", "shard/check", "shard/internal/atonce", "internal/phrase"}, third: []string{"github.com/jackc/pgx/v5", "golang.org/x/sync/"}},
	{pkg: "shard/metrics", ours: []string{"shard/topology", "shard/check", "shard/move"}, third: []string{"github.com/prometheus/", "github.com/jackc/pgx/v5"}},
	{pkg: "shard/rebalance", ours: []string{"shard/topology", "shard/check", "shard/move"}, third: []string{"golang.org/x/sync/"}},

	// Settings are read, and nothing is opened: of a store only its URL is looked at. What is
	// read are the options of the packages that it imports, with their own checks and defaults;
	// so server is below config, and knows nothing of firn.yaml.
	{pkg: "config", ours: []string{".", "lease", "pool", "sequence", "document", "public", "public/*", "shard/topology", "server", "server/resp", "store/open", "internal/block", "internal/configfile", "internal/dated", "internal/nearest", "internal/phrase", "internal/shortfile", "internal/template", "internal/term", "internal/variable"}, third: []string{"go.yaml.in/yaml/v4"}},

	// What it opens by the settings, and how: what a store says of it is in the packages below, which
	// the command, doctor and the server ask too.
	{pkg: "config/open", ours: []string{
		".", "config", "store", "store/open", "store/sqlite", "lease", "pool", "sequence", "document", "internal/block",
		"internal/cause", "internal/copied", "internal/leaseoptions", "internal/countername", "internal/whichstore",
	}},
	// A setting and a store: each answers one question about both, and opens no store, lease or
	// series. They are internal because a program has config/open, which asks them.
	{pkg: "internal/whichstore", ours: []string{"config", "store/open", "store/sqlite", "internal/variable"}},
	{pkg: "internal/copied", ours: []string{"store", "pool", "internal/block", "internal/dated", "internal/record", "internal/term"}},
	{pkg: "internal/countername", ours: []string{"config", "store", "sequence", "document", "internal/cause", "internal/nearest", "internal/record", "internal/template"}},
	{pkg: "internal/leaseoptions", ours: []string{"config", "store", "lease", "pool", "internal/term"}},
	{pkg: "internal/beside", ours: []string{".", "config", "store", "lease", "pool", "internal/term"}},
	{pkg: "internal/cause", ours: []string{"config", "store", "lease", "pool", "internal/beside", "internal/term"}},

	// The engines of commands, for any program. Hints of errors are the command's.
	{pkg: "recovery", ours: []string{"store", "pool", "sequence", "document", "internal/dated", "internal/record", "internal/term"}},
	{pkg: "backfill", ours: []string{".", "store", "pool", "internal/phrase"}},
	{pkg: "doctor", ours: []string{
		".", "config", "config/open", "store", "store/open", "store/sqlite", "lease", "pool", "sequence", "document", "plan",
		"internal/beside", "internal/block", "internal/cause", "internal/copied", "internal/dated", "internal/leaseoptions", "internal/countername",
		"internal/phrase", "internal/record", "internal/remedy", "internal/term", "internal/trouble", "internal/whichstore",
	}, third: []string{"golang.org/x/sys/"}},
	// Texts about pools, settings and stores, which the command and doctor have in common: it is
	// internal because it is no interface, and not because it is low.
	{pkg: "internal/remedy", ours: []string{".", "config", "store", "store/open", "store/sqlite", "pool", "internal/beside", "internal/cause", "internal/phrase", "internal/whichstore"}},

	{pkg: "server", ours: []string{".", "public", "document", "inspect", "internal/nearest", "internal/phrase", "internal/template"}},
	{pkg: "server/httpapi", ours: []string{".", "public", "document", "server", "server/internal/guard", "internal/phrase", "internal/template"}, third: []string{"github.com/prometheus/"}},
	{pkg: "server/console", ours: []string{"server", "server/internal/guard", "internal/phrase"}},
	// The running service: it wires what the others of server do not know of each other.
	{pkg: "server/daemon", ours: []string{
		".", "config", "config/open", "store", "store/open", "lease", "pool", "sequence", "document", "shard/topology", "shard/check", "shard/move",
		"server", "server/*", "internal/beside", "internal/block", "internal/countername", "internal/record", "internal/template", "internal/nearest", "internal/phrase", "internal/shortfile", "internal/whichstore",
		"recovery", "store/sqlite",
	}, third: []string{"github.com/coreos/go-systemd/v22"}},
	{pkg: "server/*", ours: []string{".", "public", "document", "server", "server/internal/guard"}},
	{pkg: "server/internal/guard", ours: []string{"server"}},
	{pkg: "client", ours: []string{"."}},

	{pkg: "examples/photos", ours: []string{".", "shard", "shard/*"}, third: []string{"github.com/jackc/pgx/v5"}},
	{pkg: "examples/*"},
	{pkg: "examples/*/*", third: []string{"github.com/redis/go-redis/v9"}},

	// The command is flags, one call, and what is printed. It reads no YAML, opens no store by
	// itself, and has no record of a store and no machine. What is left of the outside: the errors
	// of store/sqlite and its two ways to recover a file, for hints and store recover; and pgx,
	// because shard exec and shard init run SQL of a person, and errors of PostgreSQL become hints.
	{pkg: "cmd/firn", ours: []string{
		".", "config", "config/open", "lease", "pool", "sequence", "document", "backfill", "recovery", "doctor", "public", "inspect", "plan", "verify",
		"page", "server", "server/daemon", "shard", "shard/*", "store", "store/open", "store/sqlite",
		"internal/beside", "internal/cause", "internal/copied", "internal/leaseoptions", "internal/leash", "internal/pageagent", "internal/countername", "internal/nearest", "internal/phrase",
		"internal/picture", "internal/remedy", "internal/shortfile", "internal/takeover", "internal/template", "internal/trouble", "internal/ui", "internal/variable", "internal/version", "internal/whichstore",
	}, third: []string{"github.com/spf13/", "github.com/jackc/pgx/v5"}},
	{pkg: "cmd/*", ours: []string{".", "*", "*/*"}, third: []string{""}},
	// Tests of the pages as HTML.
	{pkg: "site"},
	{pkg: "internal/nearest"},
	{pkg: "internal/picture", ours: []string{"."}},
	{pkg: "internal/configfile"},
	{pkg: "internal/shortfile"},
	{pkg: "internal/variable"},
	{pkg: "internal/version"},
	// Only tests import it.
	{pkg: "internal/golden"},
	{pkg: "internal/golden/stored", ours: []string{".", "store", "lease", "pool", "sequence", "document", "recovery", "internal/golden"}},
	{pkg: "internal/trouble"},
	{pkg: "internal/record", ours: []string{"store"}},
	{pkg: "internal/term", ours: []string{".", "store", "internal/record"}},
	{pkg: "internal/holder", ours: []string{".", "store", "internal/term"}},
	{pkg: "internal/pagefile", ours: []string{"."}},
	{pkg: "internal/grantfile", ours: []string{"internal/holder"}},
	// It opens pools, so it needs the errors and the records that package pool declares. Nothing
	// that pool imports imports it: lease and the simulation of pools run it.
	{pkg: "internal/opening", ours: []string{".", "store", "internal/term", "pool"}},
	{pkg: "internal/dated", ours: []string{".", "store", "internal/block", "internal/record", "internal/template"}},
	{pkg: "internal/template"},
	{pkg: "internal/block", ours: []string{"store", "internal/record"}},
	{pkg: "internal/supply", ours: []string{".", "store", "internal/block", "internal/record"}},
	{pkg: "internal/phrase"},
	{pkg: "internal/ui", ours: []string{"internal/phrase"}, third: []string{"golang.org/x/term"}},
	{pkg: "internal/leash", third: []string{"golang.org/x/sys/"}},
	// The engine of firn series import: as high as doctor, and internal until a program asks for it.
	{pkg: "internal/takeover", ours: []string{".", "config", "sequence", "store", "store/open", "internal/block", "internal/phrase"}, third: []string{"github.com/go-sql-driver/mysql"}},
	{pkg: "internal/*", ours: []string{".", "*", "*/*", "*/*/*"}, third: []string{""}},
	{pkg: "internal/*/*", ours: []string{".", "*", "*/*", "*/*/*"}, third: []string{""}},
}

func TestArrows(t *testing.T) {
	for _, p := range packages(t) {
		name := p.name()
		i := slices.IndexFunc(arrows, func(r rule) bool { return matches(r.pkg, name) })
		if i < 0 {
			t.Errorf("%s: no rule in arrows says what it may import", name)
			continue
		}
		for _, imp := range p.Imports {
			if !arrows[i].allows(imp) {
				t.Errorf("%s must not import %s", name, imp)
			}
		}
	}
}

func (r rule) allows(imp string) bool {
	if ours, ok := below(imp); ok {
		return slices.ContainsFunc(r.ours, func(pattern string) bool { return matches(pattern, ours) })
	}
	if standard(imp) {
		return true
	}
	return slices.ContainsFunc(r.third, func(prefix string) bool { return strings.HasPrefix(imp, prefix) })
}

// TestArrowsCatch makes sure that the rules refuse what they are there for.
func TestArrowsCatch(t *testing.T) {
	for _, tt := range []struct {
		pkg, imp string
		ok       bool
	}{
		{".", "time", true},
		{".", module + "/store", false},
		{".", "golang.org/x/sys/unix", false},
		{"store", module, false},
		{"lease", module + "/store", true},
		{"lease", module + "/store/memory", false},
		{"internal/term", module + "/lease", false},
		{"store/sqlite", "modernc.org/sqlite", true},
		{"store/sqlite", "github.com/jackc/pgx/v5", false},
		{"store/sqlite", module + "/lease", false},
		{"public", "github.com/sqids/sqids-go", false},
		{"public", module + "/public/sqids", false},
		{"server", module + "/lease", false},
		{"cmd/firn", module + "/store/open", true},
		{"cmd/firn", module + "/store/etcd", false},
		{"cmd/firn", module + "/internal/record", false},
		{"cmd/firn", module + "/internal/term", false},
		{"cmd/firn", module + "/internal/block", false},
		{"cmd/firn", "github.com/go-sql-driver/mysql", false},
		{"doctor", "github.com/spf13/cobra", false},
		{"doctor", module + "/internal/ui", false},
		{"recovery", module + "/config/open", false},
		{"cmd/firn", "go.yaml.in/yaml/v4", false},
		{"config", module + "/internal/ui", false},
		{"config", module + "/config/open", false},
		{"config/open", "github.com/spf13/cobra", false},
		{"server/daemon", module + "/internal/ui", false},
	} {
		i := slices.IndexFunc(arrows, func(r rule) bool { return matches(r.pkg, tt.pkg) })
		if got := arrows[i].allows(tt.imp); got != tt.ok {
			t.Errorf("%s imports %s: allowed %v, want %v", tt.pkg, tt.imp, got, tt.ok)
		}
	}
}

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
