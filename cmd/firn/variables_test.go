package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/internal/variable"
)

// eachFlag calls f with each command and one of its own flags.
func eachFlag(root *cobra.Command, f func(cmd *cobra.Command, flag *pflag.Flag)) {
	cmds := []*cobra.Command{root}
	for len(cmds) > 0 {
		cmd := cmds[0]
		cmds = append(cmds[1:], cmd.Commands()...)
		cmd.InheritedFlags() // joins those of its parents
		if cmd.Runnable() {
			cmd.Flags().VisitAll(func(flag *pflag.Flag) { f(cmd, flag) })
		}
	}
}

// parsed runs a command line up to where the command itself would begin, and returns
// the flag as it is then.
func parsed(path, flag string, args ...string) (f *pflag.Flag, errs string, err error) {
	root := newRoot()
	cmd, _, err := root.Find(strings.Fields(path)[1:])
	if err != nil {
		return nil, "", err
	}
	cmd.Args, cmd.Run, cmd.RunE = cobra.ArbitraryArgs, nil, func(*cobra.Command, []string) error { return nil }
	var text bytes.Buffer
	root.SetErr(&text)
	root.SetArgs(append(strings.Fields(path)[1:], args...))
	err = root.Execute()
	return cmd.Flags().Lookup(flag), text.String(), err
}

// A flag has a variable if it is in the table, and else none: what nobody has typed
// claims and confirms nothing. That holds for flags that are made tomorrow.
func TestOnlySettingsHaveVariables(t *testing.T) {
	var names []string
	marked := 0
	eachFlag(newRoot(), func(cmd *cobra.Command, flag *pflag.Flag) {
		name := "FIRN_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		if v, ok := variableOf(cmd, flag.Name); ok {
			marked++
			if v != name {
				t.Errorf("--%s has the variable %s", flag.Name, v)
			}
			return
		}
		if flag.Name == "help" {
			return
		}
		names = append(names, flag.Name)
		t.Setenv(name, "1")
		defer os.Unsetenv(name)
		f, errs, err := parsed(cmd.CommandPath(), flag.Name)
		if err != nil || f.Changed || f.Value.String() != flag.Value.String() {
			t.Errorf("%s=1 %s: --%s is %q, changed: %t; %v", name, cmd.CommandPath(), flag.Name, f.Value, f.Changed, err)
		}
		// What another command reads, and the worker of hold, deserves no word.
		want := !slices.Contains(variableNames(), name) && flag.Name != "worker" && !slices.Contains(ownWarnings, cmd.CommandPath())
		if got := strings.Contains(errs, "firn: warning: firn does not read the variable "+name+"; only the flag --"+flag.Name+" counts\n"); got != want {
			t.Errorf("%s=1 %s: a warning: %t, want %t: %s", name, cmd.CommandPath(), got, want, errs)
		}
	})
	for _, claim := range []string{
		"new", "yes", "write", "incomplete", "gone", "clean", "out-of-order", "drain", "on-lossy-store", "insecure-no-auth",
		"dry-run", "numbers", "count", "above", "partial", "worker", "shard", "cache", "kind", "order",
	} {
		if !slices.Contains(names, claim) {
			t.Errorf("--%s was not tried: it has a variable, or is no flag any more", claim)
		}
	}
	if marked < len(variable.All) {
		t.Errorf("%d flags have a variable", marked)
	}
}

// A variable of the table is a flag of each of its commands, and of one type.
func TestVariableTable(t *testing.T) {
	types, have := map[string]string{}, map[string][]string{}
	eachFlag(newRoot(), func(cmd *cobra.Command, flag *pflag.Flag) {
		name, ok := variableOf(cmd, flag.Name)
		if !ok {
			return
		}
		_, path, _ := strings.Cut(cmd.CommandPath(), " ")
		have[flag.Name] = append(have[flag.Name], path)
		kind := strings.ToLower(flag.Value.Type())
		if types[name] != "" && types[name] != kind {
			t.Errorf("%s is of type %s for firn %s, and of type %s elsewhere", name, kind, path, types[name])
		}
		types[name] = kind
	})
	for _, v := range variable.All {
		if len(have[v.Key]) == 0 {
			t.Errorf("%s: no command has --%s", v.Name(), v.Key)
		}
		for _, command := range readBy[v.Key] {
			if !slices.Contains(have[v.Key], command) {
				t.Errorf("%s: firn %s has no --%s", v.Name(), command, v.Key)
			}
		}
	}
}

// Each variable of the table counts, unless the flag is given, and is an error where
// it is empty.
func TestVariablesCount(t *testing.T) {
	values := map[string]string{
		"json": "true", "workers": "5", "lanes": "2", "renew": "7s", "ttl": "7s", "outage": "7s", "max-ahead": "7ms", "wait": "7s",
		"layout": "discord", "store": "sqlite:/some.db", "server": "a=postgres://u@h/d", "address": "a=postgres://u@h/d",
	}
	eachFlag(newRoot(), func(cmd *cobra.Command, flag *pflag.Flag) {
		name, ok := variableOf(cmd, flag.Name)
		if !ok {
			return
		}
		path, value := cmd.CommandPath(), values[flag.Name]
		if value == "" {
			value = "some"
		}
		t.Setenv(name, value)
		defer os.Unsetenv(name)
		if f, errs, err := parsed(path, flag.Name); err != nil || !f.Changed || origin(f) != name || errs != "" {
			t.Errorf("%s=%s %s: %v, %s", name, value, path, err, errs)
		}
		if f, _, err := parsed(path, flag.Name, "--"+flag.Name+"="+value); err != nil || origin(f) != "--"+flag.Name {
			t.Errorf("%s --%s: %v", path, flag.Name, err)
		}
		os.Setenv(name, "")
		if _, _, err := parsed(path, flag.Name); err == nil || err.Error() != "the variable "+name+" is set and empty" {
			t.Errorf("%s= %s: %v", name, path, err)
		}
		os.Unsetenv(name)
		if _, _, err := parsed(path, flag.Name, "--"+flag.Name+"="); err == nil {
			t.Errorf("%s --%s '' is taken", path, flag.Name)
		}
	})
}

// What others set for a reason deserves no warning, and everything else does.
func TestStrayVariables(t *testing.T) {
	for environ, want := range map[string]string{
		"FIRN_STROE=x":            "FIRN_STROE: is it FIRN_STORE?",
		"FIRN_STORE_URL=x":        "FIRN_STORE_URL: is it FIRN_STORE?",
		"FIRN_NOSUCH=":            "FIRN_NOSUCH: ",
		"FIRN_MACHINE=7":          "FIRN_MACHINE: ",
		"FIRN_YES=1":              "FIRN_YES: only the flag --yes counts",
		"FIRN_SERVICE=1":          "FIRN_SERVICE: ",
		"FIRN_PORT_X=1":           "FIRN_PORT_X: ",
		"FIRN_STORE=x OTHER=y":    "",
		"firn_store=x FIRNSTORE=": "",
		"FIRN_WORKER=3":           "",
		// A command of run, with a layout of its own.
		"FIRN_MACHINE=7 FIRN_WORKER=900": "",
		"FIRN_STROE=x FIRN_WORKER=900":   "FIRN_STROE: is it FIRN_STORE?",
		// Kubernetes, of services firn and firn-web.
		"FIRN_SERVICE_HOST=10.0.0.1 FIRN_SERVICE_PORT=80 FIRN_SERVICE_PORT_HTTP=80 FIRN_PORT=tcp://10.0.0.1:80": "",
		"FIRN_PORT_80_TCP=x FIRN_PORT_80_TCP_PROTO=tcp FIRN_PORT_80_TCP_PORT=80 FIRN_PORT_80_TCP_ADDR=10.0.0.1": "",
		"FIRN_WEB_SERVICE_HOST=x FIRN_WEB_SERVICE_PORT_A_B=80 FIRN_WEB_PORT=x FIRN_WEB_PORT_53_UDP_ADDR=x":      "",
	} {
		var got []string
		for _, v := range strayVariables(newRoot(), strings.Fields(environ)) {
			got = append(got, v.name+": "+v.do)
		}
		if strings.Join(got, "\n") != want {
			t.Errorf("%s: %q, want %q", environ, got, want)
		}
	}
}

// The variables of firn's own tests are known: a command that a test runs warns of none.
func TestTestVariablesAreKnown(t *testing.T) {
	named := regexp.MustCompile(`\bFIRN_[A-Z_]*[A-Z]\b`)
	read := regexp.MustCompile(`(?:Getenv|LookupEnv|Setenv)\("(FIRN_[A-Z_]+)"|= "(FIRN_[A-Z_]+)"`)
	n := 0
	known := func(path, name string) {
		n++
		if strays := strayVariables(newRoot(), []string{name + "=1"}); len(strays) > 0 {
			t.Errorf("%s: %s is not known as a variable of firn's tests", path, name)
		}
	}
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := filepath.Base(path)
		if e.IsDir() && (base == ".git" || base == "testdata") {
			return filepath.SkipDir
		}
		build := base == "Makefile" || strings.Contains(path, "/.ci/") && !e.IsDir()
		if !build && !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "cmd/firn/variables_test.go") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if build {
			for _, name := range named.FindAllString(string(data), -1) {
				known(path, name)
			}
		}
		for _, m := range read.FindAllStringSubmatch(string(data), -1) {
			known(path, m[1]+m[2])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 20 {
		t.Errorf("only %d names were found", n)
	}
}

// docs/reference/firn-yaml.md has the table, and so has the help of firn config show.
func TestVariablesDocumented(t *testing.T) {
	data, err := os.ReadFile("../../docs/reference/firn-yaml.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	want.WriteString("| variable | flag | of | what |\n|---|---|---|---|\n")
	for _, v := range variable.All {
		commands := "each command with the flag"
		if readBy[v.Key] != nil {
			commands = "`" + strings.Join(readBy[v.Key], "`, `") + "`"
		}
		want.WriteString("| `" + v.Name() + "` | `--" + v.Key + "` | " + commands + " | " + v.About + " |\n")
		if !strings.Contains(newConfigShow().Long, v.Name()+" ") {
			t.Errorf("firn config show --help does not have %s", v.Name())
		}
	}
	if !strings.Contains(string(data), want.String()) {
		t.Errorf("docs/reference/firn-yaml.md has another table of variables than\n%s", &want)
	}
}
