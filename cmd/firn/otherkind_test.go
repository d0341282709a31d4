package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// A command for segments says which command there is for a serial of that name, and the reverse: to
// create a second counter of the name is refused.
func TestCommandsForTheOtherKind(t *testing.T) {
	dir := emptyHome(t)
	url := "sqlite:" + filepath.Join(dir, "ids.db")
	t.Setenv("FIRN_STORE", url)
	mustAll(t, "segments create orders", "serials create invoice --pattern INV-{6}")
	for args, want := range map[string]string{
		"segments set invoice --cache 5":        "firn serials change invoice --pattern PATTERN",
		"segments raise invoice 5":              "firn serials raise invoice TEXT",
		"serials change orders --pattern O-{6}": "firn segments set orders --cache N",
		"serials raise orders 5":                "firn segments raise orders N",
		"serials raise orders O-000001 --yes":   "orders is a segment, and this command is for serials",
		"segments set invoice --cache 5 --json": "invoice is a serial, and this command is for segments",
	} {
		if text := refusedWith(t, strings.Fields(args), want); strings.Contains(text, "s create ") {
			t.Errorf("%s hints what is refused: %s", args, text)
		}
	}
	mustAll(t, "segments raise orders 7", "segments set orders --cache 9", "serials raise invoice INV-000007", "serials change invoice --pattern INV-{8}")
}

// A pool that is to be changed and is missing: the workers of the hint are free.
func TestPoolSetOfAMissingPool(t *testing.T) {
	dir := emptyHome(t)
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(dir, "ids.db"))
	mustAll(t, "pool create --new --workers 0-99")
	refusedWith(t, strings.Fields("pool set web --workers 0-9"), "to use this one: --pool default", "firn pool ensure web --workers 100-109 (")
	mustAll(t, "pool ensure web --workers 100-1023")
}
