package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// A flag or a value for a sequence says which command there is for a document of that name, and the
// reverse: to create a second counter of the name is refused.
func TestCommandsForTheOtherKind(t *testing.T) {
	dir := emptyHome(t)
	url := "sqlite:" + filepath.Join(dir, "ids.db")
	t.Setenv("FIRN_STORE", url)
	mustAll(t, "series create orders --kind sequence", "series create invoice --pattern INV-{6}")
	for args, want := range map[string]string{
		"series set invoice --cache 5":        "firn series set invoice --pattern PATTERN",
		"series raise invoice 5":              "firn series raise invoice TEXT",
		"series set orders --pattern O-{6}":   "firn series set orders --cache N",
		"series raise orders O-000001 --yes":  "firn series raise orders 1000000",
		"series set invoice --cache 5 --json": "--cache is for series of kind sequence, and invoice is a document",
	} {
		if text := refusedWith(t, strings.Fields(args), want); strings.Contains(text, "s create ") {
			t.Errorf("%s hints what is refused: %s", args, text)
		}
	}
	mustAll(t, "series raise orders 7", "series set orders --cache 9", "series raise invoice INV-000007", "series set invoice --pattern INV-{8}")
}

// A pool that is to be changed and is missing: the workers of the hint are free.
func TestPoolSetOfAMissingPool(t *testing.T) {
	dir := emptyHome(t)
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(dir, "ids.db"))
	mustAll(t, "pool create --new --workers 0-99")
	refusedWith(t, strings.Fields("pool set web --workers 0-9"), "to use this one: --pool default", "firn pool ensure web --workers 100-109 (")
	mustAll(t, "pool ensure web --workers 100-1023")
}
