//go:build !windows

package main

import (
	"strings"
	"testing"
)

// A page in this test is written with ' for ` and run as those of docs are.
func pageOf(text string) *page { return readPage(strings.ReplaceAll(text, "'", "`")) }

const good = "'''console\n$ true\n'''\n"

// What would leave a command of a page unrun is a fault of the page.
func TestPageFaults(t *testing.T) {
	for text, want := range map[string]string{
		"no commands":                                                      "1: no command is run",
		good + "'''sh\nfirn next\n'''":                                     "4: commands are in a console block",
		good + "'''sh\nmake\n'''":                                          "4: commands are in a console block",
		good + "'''\n$ firn next\n'''":                                     "4: commands are in a console block",
		good + "'''yaml\na: 1\n'''":                                        "",
		good + "'''sql\nSELECT 1\n'''":                                     "4: where is this SQL run?",
		good + "<!-- not run: tired -->\n'''console\n$ firn next\n'''":     "5: not run is for what is not firn's",
		good + "<!-- not run: -->\n'''console\n$ docker ps\n'''":           "5: not run is for what is not firn's, and says why",
		good + "<!-- not run: no Docker -->\n'''console\n$ docker ps\n'''": "",
		good + "<!-- runs: x -->\n" + good:                                 "4: a comment is one of",
		good + "<!-- varies: id -->\n\ntext\n":                             "6: no block follows what is said: varies",
		good + "<!-- file: a -->\n":                                        "5: no block follows what is said: file",
		good + "<!-- run: postgres://db/a -->\n" + good:                    "5: run is not for this block",
		good + "<!-- varies: id -->\n'''console\n$ true\n1\n'''":           "5: varies: id: nothing on the page matches it",
		good + "<!-- varies: day -->\n'''console\n$ true\n1\n'''":          "5: varies: day: nothing on the page matches it (it is one of",
		good + "<!-- exits: x -->\n" + good:                                "5: exits is a code",
		good + "<!-- run by: TestX -->\n'''sh\nfirn next\n'''":             "",
		good + "<!-- run by: TestX -->\n\ntext\n":                          "6: no block follows what is said: run by",
		good + "<!-- answers: y -->\n'''sql\nSELECT 1\n'''":                "5: answers is not for this block",
		good + "<!-- server: pause db -->\n":                               "4: server is stop or start",
		good + "<!-- server: copy postgres://a@db/a -->\n":                 "4: server is stop or start",
		good + "<!-- today: yesterday -->\n":                               "4: today is a date",
		"'''console\nfirn next\n'''":                                       "2: a console block begins with a command",
	} {
		p := pageOf(text)
		if got := strings.Join(p.faults, "\n"); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s\nfaults %q, want %q", text, got, want)
		}
	}
}

// A page that says something else than its commands do is found out.
func TestPageRun(t *testing.T) {
	for text, want := range map[string]string{
		"'''console\n$ echo a; echo b >&2\na\nb\n'''":                                                                       "",
		"'''console\n$ echo a\nb\n'''":                                                                                      "2: echo a\nprinted:\na\nand the page says:\nb",
		"'''console\n$ echo a\n'''":                                                                                         "2: echo a\nprinted:\na\n",
		"'''console\n$ true\na\n'''":                                                                                        "2: true\nprinted:\n\nand",
		"'''console\n$ (exit 3)\n'''":                                                                                       "2: (exit 3): exit code 3, and the page says 0",
		"<!-- exits: 3 -->\n'''console\n$ true\n$ (exit 3)\n'''":                                                            "",
		"<!-- exits: 3 -->\n'''console\n$ (exit 3)\n$ (exit 3)\n'''":                                                        "3: (exit 3): exit code 3",
		"'''console\n$ seq 9\n1\n...\n7\n...\n9\n'''":                                                                       "",
		"'''console\n$ seq 9\n1\n...\n10\n'''":                                                                              "2: seq 9",
		"'''console\n$ echo a \\\n    b\n$ cat <<x\n> c\n> x\na b\nc\n'''":                                                  "2: echo a",
		"'''console\n$ echo a \\\n    b\na b\n$ cat <<x\n> c\n> x\nc\n'''":                                                  "",
		"<!-- varies: /[0-9]+/ -->\n'''console\n$ echo a  123 b\na 1 b\n'''":                                                "",
		"<!-- varies: /[0-9]+/ -->\n'''console\n$ echo a  123 c\na 1 b\n'''":                                                "3: echo a",
		"<!-- sh: A=1 -->\n'''console\n$ export B=2; cd /; cat\n$ echo $A$B $PWD\n12 /\n'''":                                "",
		"<!-- answers: y -->\n'''console\n$ test -t 0; printf \"Go? [y/N] \"; read x; echo did $x\nGo? [y/N] y\ndid y\n'''": "",
		"<!-- answers: n -->\n'''console\n$ printf \"Go? [y/N] \"; read x; echo $x\nGo? [y/N] y\nn\n'''":                    "3: printf",
		"<!-- stays: -->\n'''console\n$ sh -c \"echo a; sleep 0.2; echo b; sleep 100\"\na\nb\n'''\n" + good:                 "",
		"<!-- stays: -->\n'''console\n$ sh -c \"echo a; sleep 100\"\na\nb\n'''\n" + good:                                    "3: sh -c",
		"<!-- sh: false -->\n" + good:                                                                                       "1: false: exit code 1",
		"<!-- file: f -->\n'''yaml\na: 1\n'''\n'''console\n$ cat f\na: 1\n'''":                                              "",
		"'''console\n$ mkdir -p /var/lib/app/x; cd /var/lib/app; pwd\n/var/lib/app\n'''":                                    "",
		"<!-- today: 20011231 -->\n'''console\n$ test 20011231 = $(date -u +%Y%m%d) && date -u +%F\n2001-12-31\n'''":        "",
	} {
		p := pageOf(text)
		if p.faults != nil {
			t.Fatalf("%s\n%s", text, p.faults)
		}
		(&pageServers{t: t}).run(t, p)
		if got := strings.Join(p.faults, "\n"); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s\nfaults %q, want %q", text, got, want)
		}
	}
}
