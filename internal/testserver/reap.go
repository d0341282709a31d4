package testserver

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// dirPrefix begins the names of all directories of ours in the temporary one.
const dirPrefix = "firn-testserver-"

// memoryDir is where Linux has a file system in memory.
const memoryDir = "/dev/shm"

// place is where servers that may have their data in memory have it: empty for the temporary directory.
var place string

// keepInMemory has servers of PostgreSQL have their data in memory, if there is room for some. A test ends
// a server's process, never the machine, so what the server wrote is there in either case; to make and
// remove the thousands of files of a database on a disk takes longer than most tests. Other servers have
// few files, and MariaDB writes in another way where it sees that its disk is memory. The long tests,
// the torture and the moves have all servers on the disk.
func keepInMemory() {
	const room = 4 << 30
	if !Long() && free(memoryDir) >= room {
		place = memoryDir
	}
}

// MakeDir makes a temporary directory for a test run, or for a program that does what
// one does. Whoever made it removes it; where that was killed, the next run does.
func MakeDir(name string) (dir string, err error) { return makeDir("", name) }

func makeDir(place, name string) (dir string, err error) {
	reapOnce()
	test, err := self()
	if err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp(place, dirPrefix+name+"-"); err != nil {
		return "", err
	}
	return dir, record{Test: test}.write(dir)
}

// A record is what a directory says of itself, so that the next run can clean up
// when this one is killed.
type record struct {
	Test   identity `json:"test"`
	Server identity `json:"server"`
	Ports  []int    `json:"ports"`
}

var self = sync.OnceValues(func() (identity, error) { return identify(os.Getpid()) })

func (s *Server) record() error {
	test, err := self()
	if err != nil {
		return err
	}
	r := record{Test: test, Ports: s.ports}
	if s.process != nil {
		r.Server = s.process.identity
	}
	return r.write(s.dir)
}

func (r record) write(dir string) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	tmp := filepath.Join(dir, "record.tmp")
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(dir, "record.json"))
}

// records calls f with each directory of this user and its record, if it has one.
func records(f func(dir string, info os.FileInfo, r *record)) {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*"))
	inMemory, _ := filepath.Glob(filepath.Join(memoryDir, dirPrefix+"*"))
	for _, dir := range append(dirs, inMemory...) {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || !mine(info) {
			continue
		}
		var r *record
		if b, err := os.ReadFile(filepath.Join(dir, "record.json")); err == nil {
			r = new(record)
			if json.Unmarshal(b, r) != nil {
				r = nil
			}
		}
		f(dir, info, r)
	}
}

func recordedPorts() (ports []int) {
	records(func(_ string, _ os.FileInfo, r *record) {
		if r != nil {
			ports = append(ports, r.Ports...)
		}
	})
	return ports
}

var reapOnce = sync.OnceFunc(reap)

// reap ends the servers of test runs that are no more and removes their directories.
func reap() {
	records(func(dir string, info os.FileInfo, r *record) {
		switch {
		case r == nil:
			// It was made this instant, or its maker was killed at that one.
			if time.Since(info.ModTime()) < 10*time.Minute {
				return
			}
		case len(alive([]identity{r.Test})) > 0:
			return
		default:
			killFamily(r.Server)
			killProgramsIn(dir) // one that was stopped as its maker was killed does not end with it
		}
		removeDir(dir)
	})
}

// removeDir removes a server's directory and what lies elsewhere because of it.
func removeDir(dir string) {
	forgetMemory(filepath.Join(dir, "home"))
	unmount(dir)
	os.RemoveAll(dir)
}
