package sqlite

import (
	"slices"
	"strings"
	"testing"
)

func TestContainer(t *testing.T) {
	const nested = "pid:[4026532301]"
	for _, tt := range []struct {
		name  string
		env   string   // KUBERNETES_SERVICE_HOST
		kind  string   // container, the variable
		files []string // that exist
		ns    string
		disk  map[string]string // file system by path
		want  string
	}{
		{name: "a host", ns: initialNamespace, files: []string{"/home/a"}},
		{name: "a pod", env: "10.0.0.1", ns: nested, want: "KUBERNETES_SERVICE_HOST is set"},
		{name: "docker", ns: nested, files: []string{"/.dockerenv"}, want: "/.dockerenv is there"},
		{name: "podman", ns: nested, files: []string{"/run/.containerenv"}, want: "/run/.containerenv is there"},
		{name: "a machine made from a container's image", ns: initialNamespace, files: []string{"/.dockerenv", "/run/.containerenv"}},
		{name: "no /proc", files: []string{"/.dockerenv"}, want: "/.dockerenv is there"},
		{name: "a namespace alone is no container", ns: nested},
		{name: "podman by its variable", ns: nested, kind: "podman", want: "container=podman is set"},
		{name: "a system container, which keeps its files", ns: nested, kind: "lxc"},
		{name: "a program of a toolbox, on the host's files", ns: initialNamespace, kind: "podman"},
		{
			name: "the host's processes, an image's files", ns: initialNamespace, files: []string{"/.dockerenv", "/"},
			disk: map[string]string{"/": "overlay"}, want: "/ is on overlay",
		},
		{
			name: "the directory itself", ns: initialNamespace, files: []string{"/home/a/.local/state/firn", "/"},
			disk: map[string]string{"/home/a/.local/state/firn": "tmpfs"}, want: "/home/a/.local/state/firn is on tmpfs",
		},
		{
			name: "the nearest parent counts", ns: initialNamespace, files: []string{"/home/a", "/"},
			disk: map[string]string{"/home/a": "tmpfs"}, want: "/home/a is on tmpfs",
		},
		{
			name: "and no other", ns: initialNamespace, files: []string{"/home/a", "/"},
			disk: map[string]string{"/": "tmpfs"},
		},
	} {
		s := signs{
			getenv: func(name string) string {
				return map[string]string{"KUBERNETES_SERVICE_HOST": tt.env, "container": tt.kind}[name]
			},
			exists:       func(path string) bool { return slices.Contains(tt.files, path) },
			pidNamespace: func() string { return tt.ns },
			shortLived:   func(path string) string { return tt.disk[path] },
		}
		if got := s.container("/home/a/.local/state/firn"); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestStateDir(t *testing.T) {
	for _, tt := range []struct {
		goos, home string
		env        string // every variable
		want       string // with slashes; "" is none
	}{
		{"linux", "/home/a", "", "/home/a/.local/state/firn"},
		{"linux", "/home/a", "/var/state", "/home/a/.local/state/firn"}, // one file, whatever XDG_STATE_HOME says
		{"linux", "", "/var/state", ""},
		{"linux", "", "", ""},
		{"freebsd", "/home/a", "", "/home/a/.local/state/firn"},
		{"darwin", "/Users/a", "", "/Users/a/Library/Application Support/firn"},
		{"windows", "", "C:/Users/a/AppData/Local", "C:/Users/a/AppData/Local/firn"},
		{"windows", "/home/a", "", ""},
	} {
		got := stateDir(tt.goos, func(string) string { return tt.env }, tt.home)
		if strings.ReplaceAll(got, `\`, "/") != tt.want {
			t.Errorf("%s, home %q, env %q: %q, want %q", tt.goos, tt.home, tt.env, got, tt.want)
		}
	}
}
