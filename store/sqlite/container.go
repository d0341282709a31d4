package sqlite

import (
	"os"
	"path/filepath"
	"slices"
)

// signs are what container looks at.
type signs struct {
	getenv       func(name string) string
	exists       func(path string) bool
	pidNamespace func() string            // what /proc/self/ns/pid links to; "" where that cannot be read
	shortLived   func(path string) string // "overlay", "tmpfs", or "" for any other
}

// hostSigns are the signs of this process.
func hostSigns() signs {
	return signs{
		getenv: os.Getenv,
		exists: func(path string) bool { _, err := os.Stat(path); return err == nil },
		pidNamespace: func() string {
			link, err := os.Readlink("/proc/self/ns/pid")
			if err != nil {
				return ""
			}
			return link
		},
		shortLived: shortLived,
	}
}

// initialNamespace is the PID namespace of a machine and not of a container:
// PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h.
const initialNamespace = "pid:[4026531836]"

// container says by which sign what is written to dir does not outlive this
// process's container, or "" if it seems to. docs/decisions/0007 has the reasons.
func (s signs) container(dir string) string {
	if s.getenv("KUBERNETES_SERVICE_HOST") != "" {
		return "KUBERNETES_SERVICE_HOST is set"
	}
	// A machine made from a container's image keeps the file and is none.
	if s.pidNamespace() != initialNamespace {
		// Podman tells each program in a container; systemd-nspawn and LXC do too, whose containers
		// keep their files.
		if kind := s.getenv("container"); slices.Contains([]string{"podman", "docker", "oci"}, kind) {
			return "container=" + kind + " is set"
		}
		for _, file := range []string{"/run/.containerenv", "/.dockerenv"} {
			if s.exists(file) {
				return file + " is there"
			}
		}
	}
	for !s.exists(dir) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	if kind := s.shortLived(dir); kind != "" {
		return dir + " is on " + kind
	}
	return ""
}
