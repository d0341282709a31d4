package main

import (
	"os"
	"path/filepath"
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
		"only if the original and every other copy are gone for good: stop all processes that use this one, then: firn store recover --store "+url)
	mustAll(t, "store recover --moved --yes --store "+url)
	second, errs, code := called(t, "next", "--store", url)
	if code != 0 || second <= first {
		t.Errorf("exit code %d, %s; %s, and %s before", code, errs, second, first)
	}
}

// What a hint says about a serial that is missing can be typed, once its pattern is filled in.
func TestHintsOfAMissingSerial(t *testing.T) {
	dir := emptyHome(t)
	url := "sqlite:" + filepath.Join(dir, "ids.db")
	mustAll(t, "segments create other --store "+url)
	refusedWith(t, []string{"serials", "raise", "invoice", "INV-000041", "--store", url},
		"firn serials create invoice --pattern PATTERN --store "+url, "PATTERN that of its programs")
	refusedWith(t, []string{"serials", "create", "invoice", "--pattern", "PATTERN", "--store", url})
	refusedWith(t, []string{"serials", "create", "invoice", "--store", url},
		"firn serials create invoice --pattern 'INV-{yyyyMMdd}-{6}' --zone Asia/Ho_Chi_Minh --store "+url)
	write(t, dir, "firn.yaml", "store: "+url+"\nseries:\n  "+`invoice: { kind: serial, pattern: "INV-{6}" }`+"\n")
	if text := refusedWith(t, []string{"serials", "raise", "invoice", "INV-000041"}, "firn serials create invoice"); strings.Contains(text, "PATTERN") {
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
		"firn segments create orders --first N --store "+url, "firn next orders --kind flake --store "+url)
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
	out, errs, code := called(t, "workers", "ls", "--store", url)
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
	_, wait, _ := strings.Cut(text, "to wait until one falls free: --wait ")
	wait, _, _ = strings.Cut(wait, "\n")
	if d, err := time.ParseDuration(wait); err != nil || d < time.Minute {
		t.Errorf("--wait %s, %v:\n%s", wait, err, text)
	}
}

// Who is asked by how much to raise counters is told what the store knows about it.
func TestRecoverSaysHowFar(t *testing.T) {
	dir := emptyHome(t)
	url := "sqlite:" + filepath.Join(dir, "ids.db")
	mustAll(t, "next orders --kind segment -n 5000 --store "+url)
	time.Sleep(time.Second)
	const want = "segment orders was last granted numbers at 20"
	refusedWith(t, []string{"store", "recover", "--yes", "--store", url}, want, "more may have been given since")
	if _, errs, code := called(t, "store", "recover", "--yes", "--numbers", "100000", "--store", url); code != 0 || !strings.Contains(errs, want) {
		t.Errorf("exit code %d, %s", code, errs)
	}
}
