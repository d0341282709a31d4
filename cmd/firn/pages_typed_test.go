//go:build !windows

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/ui"
)

var blocks = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")

// typedAfter returns the first block of a page that is a firn.yaml with a list of series, and
// the commands of the page's console blocks below it, up to the first that draws or serves and
// those beside it.
func typedAfter(t *testing.T, page string) (config string, commands [][]string) {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range blocks.FindAllStringSubmatch(string(data), -1) {
		switch {
		case block[1] == "yaml" && config == "" && strings.Contains(block[2], "\nseries:\n"):
			config = block[2]
		case block[1] == "console" && config != "":
			last := false
			for line := range strings.Lines(block[2]) {
				typed, ok := strings.CutPrefix(strings.TrimSpace(line), "$ firn ")
				if !ok {
					t.Fatalf("%s: below its firn.yaml: %s", page, line)
				}
				commands = append(commands, strings.Fields(strings.ReplaceAll(typed, "'", ""))) // no quoted word has a space
				last = last || strings.HasPrefix(typed, "next") || typed == "serve"
			}
			if last {
				return config, commands
			}
		}
	}
	t.Fatalf("%s has no firn.yaml with series and commands below it that use them", page)
	return "", nil
}

// Of docs/reference/firn-yaml.md the first firn.yaml is written, the commands below it are typed, and each series
// gives something. A reader is asked whether a pool is new; a test says it.
func TestConfigurationPageIsTyped(t *testing.T) {
	for page, want := range map[string]map[string]string{
		"reference/firn-yaml.md": {
			"photo": `\d{18}`, "note": `\d{15,16}`, "orders": "1", "tickets": "[12]", "invoice": `INV-\d{8}-000001`, "receipt": "R1", "bill:42": "B1",
		},
	} {
		t.Run(page, func(t *testing.T) { typeConfiguration(t, "../../docs/"+page, want) })
	}
}

// typeConfiguration types the commands of a page, and compares what each series gives with a pattern.
func typeConfiguration(t *testing.T, page string, want map[string]string) {
	config, commands := typedAfter(t, page)
	dir := emptyHome(t)
	write(t, dir, "firn.yaml", config)
	drawn := map[string]string{}
	for _, args := range commands {
		if strings.Join(args[:2], " ") == "pool create" {
			args = append(args, "--new")
		}
		out, errs, code := called(t, args...)
		if code != 0 {
			t.Fatalf("firn %q: exit code %d, %s", args, code, errs)
		}
		if args[0] == "next" {
			drawn[args[1]] = strings.TrimSpace(out)
		}
	}
	if _, errs, code := called(t, "doctor"); code != 0 {
		t.Error(errs)
	}
	for name, pattern := range want {
		if !regexp.MustCompile("^" + pattern + "$").MatchString(drawn[name]) {
			t.Errorf("%s gives %q", name, drawn[name])
		}
	}
	if len(drawn) != len(want) {
		t.Errorf("drawn: %q", drawn)
	}
	for _, args := range commands { // a reader who drew before finds it there
		if len(args) > 1 && args[1] == "create" {
			if _, errs, code := called(t, args...); code != ui.ExitFailed || !strings.Contains(errs, "already") {
				t.Errorf("firn %q again: exit code %d, %s", args, code, errs)
			}
		}
	}
}
