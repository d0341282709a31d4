//go:build unix

package main

import (
	"bytes"
	"os"
	"strings"
	"syscall"
	"testing"
)

// The firn.yaml of a directory that is somebody else's names no store: the command
// stops, and reads it if it is named.
func TestForeignConfigIsNotRead(t *testing.T) {
	const nobody = 65534
	for name, tt := range map[string]struct {
		root  bool
		alter func() error
		want  string // "": it is read
	}{
		"own":           {},
		"read-only":     {alter: func() error { return os.Chmod("firn.yaml", 0o444) }},
		"others write":  {alter: func() error { return os.Chmod("firn.yaml", 0o646) }, want: "every user of this host can write it (mode 0646)"},
		"group writes":  {root: true, alter: func() error { return mode("firn.yaml", 0, nobody, 0o664) }, want: "the group nogroup can write it (mode 0664)"},
		"own group":     {root: true, alter: func() error { return mode("firn.yaml", 0, 0, 0o664) }},
		"another owner": {root: true, alter: func() error { return mode("firn.yaml", nobody, nobody, 0o600) }, want: "it belongs to nobody, not to you or root"},
		"another's link": {root: true, alter: func() error {
			if err := os.Rename("firn.yaml", "mine.yaml"); err != nil {
				return err
			}
			if err := os.Symlink("mine.yaml", "firn.yaml"); err != nil {
				return err
			}
			return os.Lchown("firn.yaml", nobody, nobody)
		}, want: "it belongs to nobody"},
		"own link": {alter: func() error {
			if err := os.Rename("firn.yaml", "mine.yaml"); err != nil {
				return err
			}
			return os.Symlink("mine.yaml", "firn.yaml")
		}},
		"link to another's": {root: true, alter: func() error {
			if err := os.Rename("firn.yaml", "theirs.yaml"); err != nil {
				return err
			}
			if err := os.Symlink("theirs.yaml", "firn.yaml"); err != nil {
				return err
			}
			return os.Chown("theirs.yaml", nobody, nobody)
		}, want: "it belongs to nobody"},
		"a pipe": {alter: func() error {
			if err := os.Remove("firn.yaml"); err != nil {
				return err
			}
			return syscall.Mkfifo("firn.yaml", 0o600)
		}, want: "it is no regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.root && os.Geteuid() != 0 {
				t.Skip("only root can give files away")
			}
			dir := t.TempDir()
			t.Chdir(dir)
			write(t, ".", "firn.yaml", "store: sqlite:"+dir+"/theirs.db\nseries:\n  photo: { kind: flake }\n")
			if tt.alter != nil {
				if err := tt.alter(); err != nil {
					t.Fatal(err)
				}
			}
			for _, args := range []string{"next photo", "doctor", "config show", "config check", "worker ls", "shard ls", "serve"} {
				if tt.want == "" && args != "next photo" {
					continue
				}
				var out, errs bytes.Buffer
				code := run(strings.Fields(args), strings.NewReader(""), &out, &errs)
				text := out.String() + errs.String()
				switch {
				case tt.want == "" && code == 0:
				case tt.want != "" && code != 0 && strings.Contains(text, "./firn.yaml is not read: "+tt.want) && strings.Contains(text, "--config ./firn.yaml"):
				default:
					t.Errorf("firn %s: exit code %d: %s", args, code, text)
				}
			}
			if _, err := os.Stat("theirs.db"); (err == nil) != (tt.want == "") {
				t.Errorf("the store that it names: %v", err)
			}
			if strings.Contains(name, "pipe") {
				return
			}
			var out, errs bytes.Buffer
			if code := run([]string{"next", "photo", "--config", "./firn.yaml"}, strings.NewReader(""), &out, &errs); code != 0 {
				t.Errorf("--config ./firn.yaml: exit code %d: %s", code, &errs)
			}
		})
	}
}

func mode(path string, uid, gid int, mode os.FileMode) error {
	if err := os.Chown(path, uid, gid); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}
