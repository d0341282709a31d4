// Package version says which version of firn this is, and what it was built from.
package version

import (
	"regexp"
	"runtime"
	"runtime/debug"
	"time"
)

// Number is the version of this source, as semantic versioning has it: that of the first heading of
// CHANGELOG.md. It stands here and nowhere else. A tag is this number after a "v".
const Number = "0.1.0"

// A Build is what a program was made from.
type Build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Time     string `json:"time,omitempty"`     // of the commit, as RFC 3339 has it
	Modified bool   `json:"modified,omitempty"` // there were changes that were not committed
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Read returns what this program was made from.
func Read() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = nil
	}
	return from(info)
}

// pseudo is the end of a version that Go makes up for a commit without a tag: its time, and the first digits of its name.
var pseudo = regexp.MustCompile(`[-.]([0-9]{14})-([0-9a-f]{12})(?:\+.*)?$`)

// from returns what info says. A checkout has the commit; a module that go install has fetched may have it in its version.
func from(info *debug.BuildInfo) Build {
	b := Build{Version: Number, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info == nil {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	if found := pseudo.FindStringSubmatch(info.Main.Version); b.Commit == "" && found != nil {
		if at, err := time.Parse("20060102150405", found[1]); err == nil {
			b.Commit, b.Time = found[2], at.Format(time.RFC3339)
		}
	}
	return b
}

// String returns the build as one line: "0.1.0 (commit abcdef123456, 2026-11-28), go1.26, linux/amd64".
func (b Build) String() string {
	text := b.Version
	if b.Commit != "" {
		text += " (commit " + b.Commit[:min(12, len(b.Commit))]
		if day, err := time.Parse(time.RFC3339, b.Time); err == nil {
			text += ", " + day.UTC().Format(time.DateOnly)
		}
		if b.Modified {
			text += ", modified"
		}
		text += ")"
	}
	return text + ", " + b.Go + ", " + b.Platform
}

// modulePath is that of firn in a program's build information.
const modulePath = "github.com/firn-id/firn"

// replaced is the commit in the version that Go gives a module of a directory, by "go mod edit -replace".
const replaced = "000000000000"

// Of returns the version of firn in a program, with the first digits of the commit if Go's version of the module
// has them: 0.1.0+f679cd880123. info may be nil.
func Of(info *debug.BuildInfo) string {
	if info == nil {
		return Number
	}
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if found := pseudo.FindStringSubmatch(m.Version); m.Path == modulePath && found != nil && found[2] != replaced {
			return Number + "+" + found[2]
		}
	}
	return Number
}
