package sqlite

import "syscall"

// Magic numbers of statfs(2).
const (
	overlayMagic = 0x794c7630
	tmpfsMagic   = 0x01021994
)

// shortLived names the kind of file system that path is on, if what is written
// there is short-lived.
func shortLived(path string) string {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return ""
	}
	switch uint32(st.Type) {
	case overlayMagic:
		return "overlay"
	case tmpfsMagic:
		return "tmpfs"
	}
	return ""
}
