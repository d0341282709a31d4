package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// A document or a sequence that was renamed in firn.yaml would begin again at its first number, and
// give out what was given out: it is refused, and what the hints say leads on.
func TestRenamedSeriesAreRefused(t *testing.T) {
	dir := emptyHome(t)
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(dir, "ids.db"))
	const pattern = `{ kind: document, pattern: "INV-{6}" }`
	write(t, dir, "firn.yaml", "series:\n  invoice: "+pattern+"\n  order: { kind: sequence }\n")
	mustAll(t, "next invoice", "next order")
	write(t, dir, "firn.yaml", "series:\n  invoices: "+pattern+"\n  orders: { kind: sequence }\n  bill: "+pattern+"\n")
	refusedWith(t, []string{"next", "invoices"},
		`could repeat texts of series "invoice"`, "write invoice in firn.yaml again, in place of invoices", "firn series create invoices --may-repeat invoice")
	refusedWith(t, []string{"next", "bill"}, "firn series create bill --may-repeat invoice")
	refusedWith(t, []string{"series", "create", "bill"}, "firn series create bill --may-repeat invoice")
	refusedWith(t, []string{"next", "orders"},
		"a counter of nearly that name, which firn.yaml does not list: order", "write order in firn.yaml again, in place of orders", "only if orders never existed: firn series create orders")
	refusedWith(t, []string{"doctor"}) // exit code 3
	out, _, code := called(t, "doctor")
	for _, want := range []string{"bad   series invoices: ", "bad   series bill: ", "bad   series orders: "} {
		if code != 3 || !strings.Contains(out, want) {
			t.Errorf("doctor: exit code %d, no %q in\n%s", code, want, out)
		}
	}

	mustAll(t, "series create orders --kind sequence", "series create invoices --may-repeat invoice", "next orders", "next invoices")
	refusedWith(t, []string{"series", "create", "bill", "--may-repeat", "invoice"}, "firn series create bill --may-repeat invoice --may-repeat invoices")
	mustAll(t, "series create bill --may-repeat invoice --may-repeat invoices", "doctor")

	// Both are listed, so both are meant.
	write(t, dir, "firn.yaml", "series:\n  photo: { kind: sequence }\n  photos: { kind: sequence }\n")
	mustAll(t, "next photo", "next photos")
}

// Without NAME nobody says that a series never existed: a name that is nearly that of a counter is refused,
// and so is a document that could repeat texts, before anything is created.
func TestCreateAllRefusesNearNames(t *testing.T) {
	dir := emptyHome(t)
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(dir, "ids.db"))
	mustAll(t, "series create orders --kind sequence", "next orders -n 3", "series create invoice --pattern INV-{6}")
	write(t, dir, "firn.yaml", "series:\n  items: { kind: sequence }\n  one: { kind: document, pattern: \"I-{6}\" }\n  two: { kind: document, pattern: \"I-{8}\" }\n")
	refusedWith(t, strings.Fields("series create"), "the documents one (I-{6}) and two (I-{8}) of firn.yaml could give the same texts", "then: firn series create two --may-repeat one")
	for listed, want := range map[string][]string{
		"ordrs: { kind: sequence }": {
			`the store has no sequence "ordrs", and has a counter of nearly that name, which firn.yaml does not list: orders`,
			"if orders was renamed or is mistyped: write orders in firn.yaml again, in place of ordrs. A counter keeps its name",
			"only if ordrs never existed: firn series create ordrs",
		},
		`bill: { kind: document, pattern: "INV-{6}" }`: {
			`could repeat texts of series "invoice"`, "write invoice in firn.yaml again, in place of bill", "firn series create bill --may-repeat invoice",
		},
	} {
		write(t, dir, "firn.yaml", "series:\n  items: { kind: sequence }\n  "+listed+"\n")
		text := refusedWith(t, strings.Fields("series create"), want...)
		finding, _, _ := called(t, "doctor")
		for line := range strings.Lines(text) {
			_, said, _ := strings.Cut(strings.TrimSpace(line), "firn: hint: ")
			if !strings.Contains(finding, said) {
				t.Errorf("doctor does not say %q:\n%s", said, finding)
			}
		}
		if out, _, _ := called(t, "series", "ls"); strings.Contains(out, "items") {
			t.Errorf("it has created a series before it refused %s:\n%s", listed, out)
		}
	}
	write(t, dir, "firn.yaml", "series:\n  items: { kind: sequence }\n  ordrs: { kind: sequence }\n")
	mustAll(t, "series create ordrs", "series create", "next ordrs", "next items", "doctor")
}

// A series that firn.yaml does not list is mistyped as easily.
func TestMistypedSeriesOfAKind(t *testing.T) {
	dir := emptyHome(t)
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(dir, "ids.db"))
	mustAll(t, "next orders --kind sequence", "next invoice --pattern INV-{6}", "next orders --kind sequence")
	text := refusedWith(t, strings.Fields("next ordrs --kind sequence"), "has a counter of nearly that name: orders", "to draw from the counter that is there: firn next orders", "firn series create ordrs --kind sequence")
	if strings.Contains(text, "firn.yaml") {
		t.Errorf("no firn.yaml is read: %s", text)
	}
	refusedWith(t, strings.Fields("next invoise --pattern INV-{6}"), "firn next invoice", "firn series create invoise --pattern 'INV-{6}' --may-repeat invoice")
	refusedWith(t, strings.Fields("next invoise --pattern R-{6}"), "firn next invoice", "only if invoise never existed: firn series create invoise --pattern 'R-{6}'")
	mustAll(t, "series create invoise --pattern R-{6}", "next invoise")
}

// Documents that were created before, or at the same moment, and could repeat each other's texts, are found.
func TestDoctorFindsTwins(t *testing.T) {
	dir := emptyHome(t)
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(dir, "ids.db"))
	mustAll(t, "series create a --pattern INV-{6}", "series create b --pattern INV-{4} --may-repeat a", "doctor")
	out, _, _ := called(t, "doctor")
	if !strings.Contains(out, "ok    documents a and b: their texts may be equal, as --may-repeat says") {
		t.Error(out)
	}
}

// A store that was recovered may have lost the counter that is to be created: to create it wants
// to know where it was, or that it never existed.
func TestCreateOnARecoveredStore(t *testing.T) {
	dir := emptyHome(t)
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(dir, "ids.db"))
	mustAll(t, "next orders --kind sequence", "store recover --yes --numbers 1000")
	for command, want := range map[string]string{
		"series create items --kind sequence":     "if it existed: firn series create items --kind sequence --first N",
		"series create invoice --pattern INV-{6}": "firn series create invoice --pattern 'INV-{6}' --after TEXT",
	} {
		refusedWith(t, strings.Fields(command), "it may have had one, which was lost", want, " --new")
	}
	mustAll(t, "series create items --kind sequence --first 500", "series create photos --kind sequence --new", "series create bill --pattern B-{4} --new",
		"series create invoice --pattern INV-{6} --after INV-000041")
	for command, want := range map[string]string{"next items": "500\n", "next photos": "1\n", "next bill": "B-0001\n", "next invoice": "INV-000042\n"} {
		if out, errs, code := called(t, strings.Fields(command)...); out != want {
			t.Errorf("%s: %d, %q, want %q; %s", command, code, out, want, errs)
		}
	}
	refusedWith(t, []string{"series", "create", "items", "--kind", "sequence"}, "is there already")
	refusedWith(t, strings.Fields("series create other --pattern O-{6} --after INV-000041"), `there should be "O-"`)
}

// Whoever created a pool by ensure was not sure that the store lost nothing. So no counter begins
// there by itself or by create, until somebody says where it begins or that it never existed.
func TestCreateWhereAPoolWasEnsured(t *testing.T) {
	dir := emptyHome(t)
	url := "sqlite:" + filepath.Join(dir, "ids.db")
	t.Setenv("FIRN_STORE", url)
	mustAll(t, "pool ensure")
	const lost = "it may have had one, which was lost"
	for command, want := range map[string]string{
		"series create items --kind sequence":     "if it existed: firn series create items --kind sequence --first N",
		"series create invoice --pattern INV-{6}": "firn series create invoice --pattern 'INV-{6}' --after TEXT",
		"next items": "if it was a sequence: firn series create items --kind sequence --first N",
	} {
		refusedWith(t, strings.Fields(command), lost, want)
	}
	refusedWith(t, strings.Fields("next items --kind sequence"), `has no series "items"`, "if it existed")
	refusedWith(t, strings.Fields("next invoice --pattern INV-{6}"), `has no series "invoice"`, "if it existed")
	write(t, dir, "firn.yaml", "series:\n  items: { kind: sequence }\n  invoice: { kind: document, pattern: 'INV-{6}' }\n")
	t.Chdir(dir)
	refusedWith(t, strings.Fields("series create"), lost, "if it existed: firn series create items --first N, with N above every number in use\n",
		"only if it never existed: firn series create items --new\n")
	if _, errs, _ := called(t, "series", "create"); strings.Contains(errs, "TEXT") {
		t.Errorf("firn.yaml says that items is a sequence: %s", errs)
	}
	refusedWith(t, strings.Fields("serve --resp 127.0.0.1:0 --http off"), `has no series "items"`, `has no series "invoice"`)
	mustAll(t, "series create items --first 500")
	refusedWith(t, strings.Fields("series create"), lost, "if it existed: firn series create invoice --after TEXT, with TEXT the last one given out\n")
	if _, errs, _ := called(t, "series", "create"); strings.Contains(errs, "sequence") {
		t.Errorf("firn.yaml says that invoice is a document: %s", errs)
	}
	mustAll(t, "series create invoice --after INV-000041")
	for command, want := range map[string]string{"next items": "500\n", "next invoice": "INV-000042\n"} {
		if out, errs, code := called(t, strings.Fields(command)...); out != want {
			t.Errorf("%s: %d, %q, want %q; %s", command, code, out, want, errs)
		}
	}
}

// A pool that ensure found there says nothing of what the store lost.
func TestCreateWhereEnsureFoundThePool(t *testing.T) {
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(emptyHome(t), "ids.db"))
	mustAll(t, "pool create --new", "pool ensure", "series create items --kind sequence", "next invoice --pattern INV-{6}")
}

// A hint about another document does not repeat what was said of the one that was refused.
func TestOverlapHintDrawsFromTheOther(t *testing.T) {
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(emptyHome(t), "ids.db"))
	mustAll(t, "series create d0 --pattern A{1+}", "series create e0 --pattern X{6}-{yyyyMMdd} --zone Asia/Ho_Chi_Minh")
	for _, c := range []struct{ create, draw string }{
		{"series create d1 --pattern A1{1+}", "next d0"},
		{"series create d1 --pattern A{3}", "next d0"},
		{"series create e1 --pattern X{7}-{yyyyMMdd} --zone UTC", "next e0"},
	} {
		_, errs, code := called(t, strings.Fields(c.create)...)
		if code == 0 {
			continue // the texts of these two cannot meet
		}
		if !strings.Contains(errs, "firn "+c.draw+"\n") {
			t.Errorf("%s: %s", c.create, errs)
		}
	}
	mustAll(t, "next d0", "next e0")
}

// A flag whose value is missing does not take the next flag in its place.
func TestFlagIsNoValue(t *testing.T) {
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(emptyHome(t), "ids.db"))
	for command, want := range map[string]string{
		"pool create two --may-repeat --new":                         "--may-repeat needs a value, and --new is a flag",
		"series create d --pattern D{1+} --may-repeat --new":         "--may-repeat needs a value, and --new is a flag",
		"token create shop --series --json":                          "--series needs a value, and --json is a flag",
		"series create d --pattern D{1+} --after --may-repeat=other": "--after needs a value, and --may-repeat=other is a flag",
	} {
		refusedWith(t, strings.Fields(command), want)
	}
}

// A series whose settings in firn.yaml are not those that it was created with is refused when it is
// opened: doctor says so before.
func TestDoctorComparesSettings(t *testing.T) {
	dir := emptyHome(t)
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(dir, "ids.db"))
	mustAll(t, "series create invoice --pattern INV-{6}", "series create orders --kind sequence --first 100", "series create items --kind sequence --cache 7", "next")
	const items = "  items: { kind: sequence, cache: 9 }\n"
	write(t, dir, "firn.yaml", "series:\n  invoice: { kind: document, pattern: \"INV-{8}\" }\n  orders: { kind: sequence, first: 1 }\n"+items)
	out, _, code := called(t, "doctor")
	for _, want := range []string{"bad   series invoice: ", "firn series set invoice", "bad   series orders: ", "leave out first"} {
		if code != 3 || !strings.Contains(out, want) {
			t.Errorf("exit code %d, no %q in\n%s", code, want, out)
		}
	}
	if strings.Contains(out, "series items") {
		t.Errorf("each process has a cache of its own: %s", out)
	}
	write(t, dir, "firn.yaml", "series:\n  invoice: { kind: document, pattern: \"INV-{6}\" }\n  orders: { kind: sequence, first: 100 }\n"+items)
	mustAll(t, "doctor", "next invoice", "next orders")
}
