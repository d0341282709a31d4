package testserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// A kind is what is known about a sort of server before one is started.
type kind struct {
	name     string   // in directories, messages and FIRN_TEST_NAME_URL
	env      string   // the variable that points tests at a server that runs already
	packages []string // of Debian
	accounts []string // to run under instead of root; the first that exists
	binaries []string // as find reads them; all are needed
	stop     syscall.Signal
	long     bool // only long tests use it: Install leaves it out where they do not run
	inMemory bool // its data of some thousand files may be in memory: see keepInMemory
}

// The programs, by name on the PATH or as a pattern of absolute paths.
const (
	pgPattern = "/usr/lib/postgresql/*/bin/" // where Debian keeps them, off the PATH
	zkJar     = "/usr/share/java/zookeeper.jar"
)

var (
	postgresKind = &kind{
		name: "postgres", env: "FIRN_TEST_POSTGRES_URL", packages: []string{"postgresql"}, inMemory: true,
		accounts: []string{"postgres", "nobody"},
		binaries: []string{pgPattern + "initdb", pgPattern + "postgres", pgPattern + "pg_ctl", pgPattern + "pg_basebackup", pgPattern + "pg_resetwal"},
		stop:     syscall.SIGINT, // SIGTERM would wait for the clients to leave
	}
	mariadbKind = &kind{
		name: "mariadb", env: "FIRN_TEST_MYSQL_URL", packages: []string{"mariadb-server"},
		accounts: []string{"mysql", "nobody"},
		binaries: []string{"mariadbd", "mariadb-install-db"},
		stop:     syscall.SIGTERM,
	}
	redisKind = &kind{
		name: "redis", env: "FIRN_TEST_REDIS_URL", packages: []string{"redis-server"},
		accounts: []string{"redis", "nobody"},
		binaries: []string{"redis-server"},
		stop:     syscall.SIGTERM,
	}
	etcdKind = &kind{
		name: "etcd", env: "FIRN_TEST_ETCD_URL", packages: []string{"etcd-server", "etcd-client"},
		accounts: []string{"etcd", "nobody"},
		binaries: []string{"etcd", "etcdctl"},
		stop:     syscall.SIGTERM,
	}
	zookeeperKind = &kind{
		name: "zookeeper", env: "FIRN_TEST_ZOOKEEPER_URL", packages: []string{"zookeeper", "default-jre-headless"},
		accounts: []string{"zookeeper", "nobody"},
		binaries: []string{"java", zkJar},
		stop:     syscall.SIGTERM,
	}
	pgbouncerKind = &kind{
		name: "pgbouncer", packages: []string{"pgbouncer"},
		accounts: []string{"postgres", "nobody"},
		binaries: []string{"pgbouncer"},
		stop:     syscall.SIGTERM,
	}
	// patchelfKind is for programs of newer systems, see fromDebian.
	patchelfKind = &kind{name: "patchelf", packages: []string{"patchelf"}, binaries: []string{"patchelf"}}

	kinds = []*kind{
		postgresKind, patchelfKind, mariadbKind, redisKind, etcdKind, zookeeperKind, pgbouncerKind,
		pythonKind, nodeKind, jdkKind, toolKind, promtoolKind, curlKind, spinKind, chromiumKind, faketimeKind, arm64Kind, mavenKind,
	}
)

// missing names the programs of k that are not on this machine.
func (k *kind) missing() []string {
	var names []string
	for _, b := range k.binaries {
		if _, err := find(b); err != nil {
			names = append(names, filepath.Base(b))
		}
	}
	return names
}

// find returns the path of a program. It looks at the PATH, where root's part may
// be missing, and then at the pattern, of which the last match is the newest
// version.
func find(binary string) (string, error) {
	base := filepath.Base(binary)
	if path, err := exec.LookPath(base); err == nil && !filepath.IsAbs(binary) {
		return path, nil
	}
	if !filepath.IsAbs(binary) {
		binary = "/usr/sbin/" + base
	}
	if found, _ := filepath.Glob(binary); len(found) > 0 {
		return found[len(found)-1], nil
	}
	if path, err := exec.LookPath(base); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("testserver: %s is not installed", base)
}

// program is find for what missing has seen to be there.
func program(binary string) string {
	path, err := find(binary)
	if err != nil {
		panic(err)
	}
	return path
}

// errUnsupported is what other platforms answer.
var errUnsupported = errors.New("testserver: servers are started on Linux and macOS only")

// environment is what a server sees: not the caller's, which may hold PGPORT,
// ETCD_NAME and the like. A test that gets between a server and its disk sets
// LD_PRELOAD.
func environment(home string) []string {
	env := []string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin", "LC_ALL=C", "HOME=" + home, "TMPDIR=" + home}
	if lib := os.Getenv("LD_PRELOAD"); lib != "" {
		env = append(env, "LD_PRELOAD="+lib)
	}
	return env
}
