package version

import (
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"testing"
)

// TestNumber: the number is that of the newest version in the changelog.
func TestNumber(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d|Unreleased))$`).FindSubmatch(text)
	if found == nil || string(found[1]) != Number {
		t.Errorf("the first version in CHANGELOG.md is %q, and version.Number is %q: write one number in both", found, Number)
	}
}

func TestBuild(t *testing.T) {
	end := ", " + runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH
	vcs := []debug.BuildSetting{{Key: "vcs.revision", Value: "abcdef123456789012345678901234567890abcd"}, {Key: "vcs.time", Value: "2026-11-28T23:30:00-05:00"}, {Key: "vcs.modified", Value: "false"}}
	modified := append(vcs[:2:2], debug.BuildSetting{Key: "vcs.modified", Value: "true"})
	for _, tt := range []struct {
		name, module string
		settings     []debug.BuildSetting
		want         string
	}{
		{"a checkout", "v0.0.0-20261129043000-abcdef123456", vcs, "0.1.0 (commit abcdef123456, 2026-11-29)" + end},
		{"a checkout with changes", "v0.0.0-20261129043000-abcdef123456+dirty", modified, "0.1.0 (commit abcdef123456, 2026-11-29, modified)" + end},
		{"a checkout without VCS", "(devel)", nil, "0.1.0" + end},
		{"go install of a tag", "v0.1.0", nil, "0.1.0" + end},
		{"go install of a commit", "v0.0.0-20261128010203-0123456789ab", nil, "0.1.0 (commit 0123456789ab, 2026-11-28)" + end},
		{"go install of a commit after a tag", "v0.1.1-0.20261128010203-0123456789ab", nil, "0.1.0 (commit 0123456789ab, 2026-11-28)" + end},
	} {
		if got := from(&debug.BuildInfo{Main: debug.Module{Version: tt.module}, Settings: tt.settings}).String(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := from(nil).String(); got != "0.1.0"+end {
		t.Errorf("without build information: %q", got)
	}
}

// TestOf: a program shows the version of firn's source, whichever way it got that.
func TestOf(t *testing.T) {
	ours := func(v string) debug.Module { return debug.Module{Path: "github.com/firn-id/firn", Version: v} }
	own := debug.Module{Path: "example.com/photos", Version: "v7.1.0"}
	tagged, untagged, replaced := ours("v0.1.0"), ours("v0.1.1-0.20261128135000-f679cd880123"), ours("v0.0.0-00010101000000-000000000000")
	for _, tt := range []struct {
		name string
		info *debug.BuildInfo
		want string
	}{
		{"nothing is known", nil, Number},
		{"a checkout", &debug.BuildInfo{Main: ours("(devel)")}, Number},
		{"a checkout with changes", &debug.BuildInfo{Main: ours("v0.0.0-20261128135000-f679cd880123+dirty")}, Number + "+f679cd880123"},
		{"a program with the tagged module", &debug.BuildInfo{Main: own, Deps: []*debug.Module{{Path: "example.com/other", Version: "v0.0.0-20260101000000-aaaaaaaaaaaa"}, &tagged}}, Number},
		{"a program with a commit of it", &debug.BuildInfo{Main: own, Deps: []*debug.Module{&untagged}}, Number + "+f679cd880123"},
		{"a program that replaces it by a checkout", &debug.BuildInfo{Main: own, Deps: []*debug.Module{&replaced}}, Number},
	} {
		if got := Of(tt.info); got != tt.want {
			t.Errorf("%s: %s, not %s", tt.name, got, tt.want)
		}
	}
}
