package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/ui"
)

// Somebody who mistypes a pool is led to the one that was meant, not to the first by name.
func TestHintNamesThePoolThatWasMeant(t *testing.T) {
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(emptyHome(t), "ids.db"))
	for _, args := range []string{"pool create audit --workers 0-31 --new", "pool create shop --workers 32-63 --new"} {
		if _, errs, code := called(t, strings.Fields(args)...); code != 0 {
			t.Fatalf("%s: %s", args, errs)
		}
	}
	for asked, want := range map[string]string{
		"shpo":    "hint: to use shop: --pool shop",
		"billing": "hint: to use one of these: --pool audit",
	} {
		if _, errs, code := called(t, "next", "--pool", asked); code != ui.ExitFailed || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d: %s", asked, code, errs)
		}
	}
}

// A pool that asks for eight workers is offered eight others.
func TestHintOffersAsManyWorkersAsWereAsked(t *testing.T) {
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(emptyHome(t), "ids.db"))
	if _, errs, code := called(t, "pool", "create", "ledger", "--workers", "32-1023", "--new"); code != 0 {
		t.Fatal(errs)
	}
	_, errs, code := called(t, "pool", "create", "x", "--workers", "40-47", "--new")
	if want := "firn pool create x --workers 0-7 --new)"; code != ui.ExitFailed || !strings.Contains(errs, want) {
		t.Errorf("exit code %d, no %q: %s", code, want, errs)
	}
}

// The pools of the manifests can be created in one store, in any order.
func TestKubernetesPoolsShareAStore(t *testing.T) {
	files, err := filepath.Glob("../../examples/kubernetes/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	create := regexp.MustCompile(`(?m)^#   \$ firn (pool create.*)$`)
	var commands []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range create.FindAllStringSubmatch(string(text), -1) {
			commands = append(commands, m[1]+" --new")
		}
	}
	if len(commands) != 5 {
		t.Fatalf("%d commands: %q", len(commands), commands)
	}
	for first := range commands {
		t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(emptyHome(t), "ids.db"))
		for i := range commands {
			command := commands[(first+i)%len(commands)]
			if _, errs, code := called(t, strings.Fields(command)...); code != 0 {
				t.Errorf("%s: exit code %d: %s", command, code, errs)
			}
		}
	}
}
