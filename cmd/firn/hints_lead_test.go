package main

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/open"
)

// refusedWith checks that a command fails and says all of that.
func refusedWith(t *testing.T, args []string, want ...string) string {
	t.Helper()
	out, errs, code := called(t, args...)
	if code == 0 {
		t.Errorf("firn %q: exit code 0, %s", args, out)
	}
	for _, text := range want {
		if !strings.Contains(errs, text) {
			t.Errorf("firn %q does not say %q:\n%s", args, text, errs)
		}
	}
	return errs
}

// A file that went to another disk with its hidden file is another file there: the hint for that
// is typed as it stands, and no id repeats.
func TestHintsOfAFileOnAnotherDisk(t *testing.T) {
	dir := emptyHome(t)
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	for _, name := range []string{from, to} {
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	first, errs, code := called(t, "next", "--store", "sqlite:"+from+"/ids.db")
	if code != 0 {
		t.Fatal(errs)
	}
	files, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(from, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		write(t, to, f.Name(), string(b))
	}
	if err := os.RemoveAll(from); err != nil {
		t.Fatal(err)
	}
	url := "sqlite:" + to + "/ids.db"
	refusedWith(t, []string{"next", "--store", url}, "if the original is still there, use that one",
		"only if you moved the file here yourself, it is no copy and no backup, and nothing used the original since: stop all processes that use this one, then: firn store recover --store "+url+" --moved\n",
		"only if no process will use the original or another copy again, as after you put a backup back: stop all processes that use this one, then: firn store recover --store "+url)
	mustAll(t, "store recover --moved --yes --store "+url)
	second, errs, code := called(t, "next", "--store", url)
	if code != 0 || second <= first {
		t.Errorf("exit code %d, %s; %s, and %s before", code, errs, second, first)
	}
}

// What a hint says about a document that is missing can be typed, once its pattern is filled in.
func TestHintsOfAMissingDocument(t *testing.T) {
	dir := emptyHome(t)
	url := "sqlite:" + filepath.Join(dir, "ids.db")
	mustAll(t, "series create other --kind sequence --store "+url)
	refusedWith(t, []string{"series", "raise", "invoice", "INV-000041", "--store", url},
		"firn series create invoice --pattern PATTERN --store "+url, "PATTERN that of its programs")
	refusedWith(t, []string{"series", "create", "invoice", "--pattern", "PATTERN", "--store", url})
	refusedWith(t, []string{"series", "create", "invoice", "--store", url},
		"firn series create invoice --pattern 'INV-{yyyyMMdd}-{6}' --zone Asia/Ho_Chi_Minh --store "+url)
	write(t, dir, "firn.yaml", "store: "+url+"\nseries:\n  "+`invoice: { kind: document, pattern: "INV-{6}" }`+"\n")
	if text := refusedWith(t, []string{"series", "raise", "invoice", "INV-000041"}, "firn series create invoice"); strings.Contains(text, "PATTERN") {
		t.Errorf("firn.yaml says the pattern: %s", text)
	}
}

// Nothing replaces ~ in a URL, and a hint to create that directory would lead to one of that name.
func TestHintsOfATilde(t *testing.T) {
	emptyHome(t)
	text := refusedWith(t, []string{"next", "--store", "sqlite:~/x.db"}, "sqlite:$HOME/")
	if strings.Contains(text, "create it first") {
		t.Error(text)
	}
}

// After a recovery that may have lost a counter, its name gives no id in place of a number.
func TestNextAfterARecovery(t *testing.T) {
	dir := emptyHome(t)
	url := "sqlite:" + filepath.Join(dir, "ids.db")
	mustAll(t, "store recover --lost --yes --store "+url)
	refusedWith(t, []string{"next", "orders", "--store", url}, `has no counter "orders"`,
		"firn series create orders --kind sequence --first N --store "+url, "firn next orders --kind flake --store "+url)
	refusedWith(t, []string{"next", "orders", "--kind", "flake", "--store", url}, "ids of pool")
}

// The hint to give a pool other workers has those that were typed.
func TestHintsOfEnsureWithOtherWorkers(t *testing.T) {
	dir := emptyHome(t)
	url := "sqlite:" + filepath.Join(dir, "ids.db")
	mustAll(t, "pool create shop --new --workers 0-47 --store "+url)
	refusedWith(t, []string{"pool", "ensure", "shop", "--workers", "0-31", "--store", url}, "has workers 0-47, not 0-31",
		"firn pool ensure shop --workers 0-47 --store "+url, "firn pool set shop --workers 0-31 --store "+url)
}

// A pool that is being narrowed says so when it has no free worker, and when one falls free.
// Workers are listed by number.
func TestFullPoolThatIsNarrowed(t *testing.T) {
	dir := emptyHome(t)
	url := "sqlite:" + filepath.Join(dir, "ids.db")
	mustAll(t, "pool create --new --workers 0-10 --store "+url)
	s, err := open.URL(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for n := range int64(11) {
		l, err := lease.Open(t.Context(), s, &lease.Options{Choice: lease.Only(n)})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	out, errs, code := called(t, "worker", "ls", "--store", url)
	var numbers []string
	for line := range strings.Lines(out) {
		numbers = append(numbers, strings.Fields(line)[1])
	}
	if want := strings.Fields("WORKER 0 1 2 3 4 5 6 7 8 9 10"); code != 0 || !slices.Equal(numbers, want) {
		t.Errorf("the workers are %v: exit code %d, %s", numbers, code, errs)
	}
	refusedWith(t, []string{"pool", "set", "--workers", "0-5", "--store", url})
	text := refusedWith(t, []string{"next", "--store", url}, "none of the 6 workers", "is changing the workers of the pool: until that ends, it leases only these 6 of workers 0-10",
		"firn pool show default --store "+url)
	_, wait, _ := strings.Cut(text, "to wait for its worker: --wait ")
	wait, _, _ = strings.Cut(wait, "\n")
	if d, err := time.ParseDuration(wait); err != nil || d < time.Minute {
		t.Errorf("--wait %s, %v:\n%s", wait, err, text)
	}
}

// Who is asked by how much to raise counters is told when each was last granted numbers and how
// to find the number. No estimate: a rate says nothing about an hour in which more was drawn.
func TestRecoverSaysHowFar(t *testing.T) {
	dir := emptyHome(t)
	url := "sqlite:" + filepath.Join(dir, "ids.db")
	mustAll(t, "next orders --kind sequence -n 5000 --store "+url)
	time.Sleep(time.Second)
	want := []string{"sequence orders was last granted numbers, up to ", " at 20", "highest number of each in your rows", "given and not stored"}
	text := refusedWith(t, []string{"store", "recover", "--yes", "--store", url}, want...)
	_, errs, code := called(t, "store", "recover", "--yes", "--numbers", "100000", "--store", url)
	if code != 0 || !strings.Contains(errs, want[0]) {
		t.Errorf("exit code %d, %s", code, errs)
	}
	if text += errs; strings.Contains(text, "about") && strings.Contains(text, "more may have been given") {
		t.Errorf("an estimate: %s", text)
	}
}

// A directory that is missing may have been lost, or its volume is not mounted, or the path is
// mistyped. Each command says so, and what to type for each; each of that works.
func TestHintsOfAMissingDirectory(t *testing.T) {
	for _, args := range [][]string{{"next"}, {"next", "orders", "--kind", "sequence"}, {"series", "ls"}, {"pool", "ls"}, {"pool", "ensure"}, {"store", "setup"}, {"doctor"}, {"store", "recover", "--yes"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			dir := filepath.Join(emptyHome(t), "the volume", "d")
			url := "sqlite:" + dir + "/ids.db"
			out, errs, code := called(t, append(args, "--store", url)...)
			said := out + errs
			for _, text := range []string{"use another", "volume is not mounted", "firn store recover --store '" + url + "' --lost", "mkdir -p '" + dir + "'"} {
				if code == 0 || !strings.Contains(said, text) {
					t.Errorf("exit code %d, and it does not say %q:\n%s", code, text, said)
				}
			}
			if strings.Contains(said, "create it first") {
				t.Error(said)
			}
			if _, err := os.Stat(dir); err == nil {
				t.Error("the directory was made")
			}
			if _, errs, code := called(t, "store", "recover", "--store", url, "--lost", "--yes"); code != 0 {
				t.Fatalf("recover --lost: exit code %d, %s", code, errs)
			}
			refusedWith(t, []string{"next", "--store", url}, "start at")
			refusedWith(t, []string{"next", "orders", "--store", url, "--kind", "sequence"}, "firn series create orders --kind sequence --first N")
		})
	}
}

// A default file in a directory that cannot be made is not a reason to make another file.
func TestHintsOfADefaultFileOutOfReach(t *testing.T) {
	dir := emptyHome(t)
	write(t, dir, ".local", "")
	for _, args := range [][]string{{"next"}, {"pool", "ensure"}, {"run", "--", "true"}} {
		text := refusedWith(t, args, "another file makes the same ids")
		if strings.Contains(text, "--store sqlite:") {
			t.Errorf("%q names another file: %s", args, text)
		}
	}
}

// A user whose home does not exist and cannot be made has no default file: the hint is that for a
// user without a home.
func TestHintsOfAHomeThatCannotBeMade(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("NOT TESTED: only Linux has a directory in which nobody makes one")
	}
	emptyHome(t)
	t.Setenv("HOME", "/proc/nonexistent")
	for _, args := range [][]string{{"next"}, {"serve", "--resp", "off", "--http", "127.0.0.1:0"}, {"next", "orders", "--kind", "sequence"}} {
		text := refusedWith(t, args, "cannot be made: mkdir /proc/nonexistent", nameStore)
		if strings.Contains(text, "let this user enter") {
			t.Errorf("%q: the hint says to let a user enter a directory that does not exist: %s", args, text)
		}
	}
}

// A pool of another layout that no worker is left for is not offered workers that are refused.
func TestHintsOfAPoolOfAnotherLayout(t *testing.T) {
	dir := emptyHome(t)
	url := "sqlite:" + filepath.Join(dir, "ids.db")
	mustAll(t, "pool create --new --store "+url, "pool set default --workers 0-511 --store "+url)
	for _, args := range []string{"run --pool shop --layout classic -- true", "pool ensure shop --layout classic", "pool create shop --layout classic --new"} {
		typed := append(strings.Fields(args), "")
		typed = typed[:len(typed)-1]
		at := slices.Index(typed, "--")
		if at < 0 {
			at = len(typed)
		}
		typed = slices.Insert(typed, at, "--store", url)
		text := refusedWith(t, typed, "default has had every worker", "no worker is left for layout classic",
			"leave out --layout classic everywhere", "--workers 512-1023 --layout firn", "--may-repeat default")
		for _, told := range toldCommands(text) {
			if strings.Contains(strings.Join(told, " "), "--layout classic") && !slices.Contains(told, "--may-repeat") {
				t.Errorf("%s: the hint leads to the same refusal: %q", args, told)
			}
		}
	}
}

// A pool that is about to give up workers has them left for another one.
func TestHintsOfWorkersThatFallFree(t *testing.T) {
	dir := emptyHome(t)
	url := "sqlite:" + filepath.Join(dir, "ids.db")
	mustAll(t, "pool create --new --store "+url)
	s, err := open.URL(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l, err := lease.Open(t.Context(), s, &lease.Options{Choice: lease.Only(0)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	refusedWith(t, []string{"pool", "set", "default", "--workers", "512-1023", "--store", url}, "cannot give up worker 0 yet")
	text := refusedWith(t, []string{"next", "--pool", "shop", "--store", url}, "is giving up workers 0-511",
		"firn pool set default --workers 512-1023 --store "+url, "firn pool ensure shop --workers 0-511 --store "+url)
	if strings.Contains(text, "No worker is left") || strings.Contains(text, "may-repeat") {
		t.Error(text)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	mustAll(t, "pool set default --workers 512-1023 --store "+url, "pool ensure shop --workers 0-511 --store "+url)
}

// A file that was emptied is the store's own where its hidden file says so, and is not removed as
// one that nobody needs.
func TestHintsOfAnEmptiedFile(t *testing.T) {
	path := filepath.Join(emptyHome(t), "ids.db")
	url := "sqlite:" + path
	mustAll(t, "next --store "+url)
	for _, name := range []string{path + "-wal", path + "-shm"} {
		if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"next", "doctor", "store recover --yes", "series ls"} {
		out, errs, code := called(t, append(strings.Fields(args), "--store", url)...)
		text := out + errs
		for _, want := range []string{"the file was emptied", "put the backup back", "only if there is no backup: rm " + path + "; firn store recover --store " + url + " --lost"} {
			if code == 0 || !strings.Contains(text, want) {
				t.Errorf("%s: exit code %d, want %q: %s", args, code, want, text)
			}
		}
		if strings.Contains(text, "remove it if nobody needs it") {
			t.Error(text)
		}
	}
	// Who has decided already that the file is lost is told the rest at once.
	refusedWith(t, []string{"store", "recover", "--lost", "--yes", "--store", url}, "--lost: the file "+path+" is there, and is empty",
		"put the backup back", "only if there is no backup: rm "+path+"; firn store recover --store "+url+" --lost")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	mustAll(t, "store recover --lost --yes --store "+url)
	refusedWith(t, []string{"next", "--store", url}, "start at")
}

// A mistyped pool is not offered to be created where that would be refused.
func TestHintsOfAMistypedPool(t *testing.T) {
	dir := emptyHome(t)
	url := "sqlite:" + filepath.Join(dir, "ids.db")
	mustAll(t, "pool create --new --store "+url)
	for _, args := range [][]string{{"pool", "show", "defualt"}, {"pool", "set", "defualt", "--workers", "0-3"}, {"worker", "ls", "--pool", "defualt"}} {
		text := refusedWith(t, append(args, "--store", url), `has no pool "defualt"; it has: default`)
		if strings.Contains(text, "firn pool create") || strings.Contains(text, "firn pool ensure") {
			t.Errorf("%q: the hint would be refused: %s", args, text)
		}
	}
	text := refusedWith(t, []string{"pool", "show", "shop", "--store", url}, "firn pool set default --workers 0-511")
	if strings.Contains(text, "create shop --new") {
		t.Errorf("the hint would be refused: %s", text)
	}
	write(t, dir, "firn.yaml", "store: "+url+"\npools: { web: {} }\n")
	text = refusedWith(t, []string{"next", "--pool", "defualt"}, "is it pool default of the store?", "add it under pools of firn.yaml: pools: { default: {} }")
	if strings.Contains(text, "pool defualt of the store") {
		t.Error(text)
	}
}

// The hint for a pool that set does not find has the workers that were typed, and does not add
// that there would be others.
func TestHintsOfSetOfAMissingPool(t *testing.T) {
	dir := emptyHome(t)
	url := "sqlite:" + filepath.Join(dir, "ids.db")
	mustAll(t, "pool create other --new --workers 16-31 --store "+url)
	text := refusedWith(t, []string{"pool", "set", "shop", "--workers", "0-3", "--store", url}, "firn pool ensure shop --store "+url+" --workers 0-3 (ids start about 5 min later; add --outage if any process had an outage budget of more than 5 min)")
	if strings.Contains(text, "with all workers") {
		t.Error(text)
	}
}
