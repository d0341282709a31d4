package main

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/internal/ui"
)

// A flag or command that is not there gets a guess only where it is near to one that is.
func TestGuesses(t *testing.T) {
	emptyHome(t)
	for line, want := range map[string]string{
		"next --order strict":          "",
		"next --strict":                "",
		"next --wrker 3":               "--worker",
		"next --wokrer 3":              "--worker",
		"next --sotre x":               "--store",
		"next --stroe x":               "--store",
		"next --cuont 3":               "--count",
		"next --jsno":                  "--json",
		"next --js":                    "--json",
		"next --shards 3":              "--shard",
		"next --keep":                  "",
		"next --onlossy-store x":       "--on-lossy-store",
		"next --on-losy-stor x":        "--on-lossy-store",
		"shard where --shards 3":       "--shard",
		"shard apply d --shard 3":      "--shards",
		"shard move 1 --statement-x 3": "",
		"store recover --last":         "",
		"shard gone a --zone":          "",
		"decode --keys-by mod 5":       "",
		"verify --colum id f":          "--column",
		"pool create --worker 5":       "--workers",
		"--config x foo":               "",
		"foo":                          "",
		"nxet":                         "firn next",
		"pol":                          "firn pool",
		"poool":                        "firn pool",
		"decdoe":                       "firn decode",
		"dec":                          "firn decode",
		"pool lis":                     "",
		"pool lx":                      "",
		"pool creat":                   "firn pool create",
		"series foo":                   "",
		"token":                        "",
	} {
		_, errs, _ := called(t, strings.Fields(line)...)
		got := ""
		if m := regexp.MustCompile(`hint: is it (.*)\?\n`).FindStringSubmatch(errs); m != nil {
			got = m[1]
		}
		if got != want {
			t.Errorf("firn %s: the guess is %q, want %q\n%s", line, got, want, errs)
		}
	}
}

// A flag of another command was not mistyped, and no other flag is guessed for it, but its singular or plural. A
// flag of its own that lacks a letter in the middle is guessed, or another that is as near.
func TestGuessesOfEachCommand(t *testing.T) {
	emptyHome(t)
	all := map[string]bool{}
	eachCommand(newRoot(), func(c *cobra.Command) {
		for _, name := range flagNames(c) {
			all[name] = true
		}
	})
	guess := func(c *cobra.Command, name string) string {
		err := flagError(c, c.ParseFlags([]string{"--" + name}))
		m := regexp.MustCompile(`is it --(.*)\?`).FindStringSubmatch(textOf(err))
		if m == nil {
			return ""
		}
		return m[1]
	}
	eachCommand(newRoot(), func(c *cobra.Command) {
		own := flagNames(c)
		for name := range all {
			if c.DisableFlagParsing || c.HasSubCommands() || slices.Contains(own, name) {
				continue
			}
			if got := guess(c, name); got != "" && !isPlural(got, name) {
				t.Errorf("%s --%s: the guess is --%s", c.CommandPath(), name, got)
			}
		}
		for _, name := range own {
			typo := name[:1] + name[2:]
			if len(name) < 4 || all[typo] || c.HasSubCommands() {
				continue
			}
			if got := guess(c, typo); got != name {
				t.Errorf("%s --%s: the guess is --%s, want --%s", c.CommandPath(), typo, got, name)
			}
		}
	})
}

func eachCommand(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, sub := range c.Commands() {
		eachCommand(sub, f)
	}
}

// flagNames are the flags that a command takes.
func flagNames(c *cobra.Command) (names []string) {
	c.InheritedFlags() // makes Flags have them
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// textOf is an error with its hints.
func textOf(err error) string {
	var f *ui.Failure
	if !errors.As(err, &f) {
		return ""
	}
	var all []string
	for _, h := range f.Hints {
		all = append(all, h.Text)
	}
	return strings.Join(all, "\n")
}
