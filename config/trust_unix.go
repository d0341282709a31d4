//go:build unix

package config

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// openOwn opens a file that only its owner can have written, who is this user or
// root. why says why it is not opened.
func openOwn(path string) (f *os.File, why string, err error) {
	link, err := os.Lstat(path)
	if err != nil {
		return nil, "", err
	}
	if why := notOwn(link); why != "" {
		return nil, why, nil
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, "", err
	case !info.Mode().IsRegular():
		return nil, "it is no regular file", nil // and opening a pipe would wait
	}
	if f, err = os.Open(path); err != nil {
		return nil, "", err
	}
	if info, err = f.Stat(); err == nil { // another one may be there by now
		why = notOwn(info)
	}
	if err != nil || why != "" {
		f.Close()
		return nil, why, err
	}
	return f, "", nil
}

// notOwn says who else may have written a file, "" if nobody.
func notOwn(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "its owner is not known"
	}
	owner := strconv.FormatUint(uint64(st.Uid), 10)
	if u, err := user.LookupId(owner); err == nil {
		owner = u.Username
	}
	mode := info.Mode().Perm()
	switch {
	case st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return fmt.Sprintf("it belongs to %s, not to you or root", owner)
	case info.Mode()&fs.ModeSymlink != 0: // the mode of a link means nothing
	case mode&0o002 != 0:
		return fmt.Sprintf("every user of this host can write it (mode %04o)", mode)
	case mode&0o020 != 0:
		group := strconv.FormatUint(uint64(st.Gid), 10)
		if g, err := user.LookupGroupId(group); err == nil {
			group = g.Name
		}
		if group != owner { // a user's own group has the user's name
			return fmt.Sprintf("the group %s can write it (mode %04o)", group, mode)
		}
	}
	return ""
}
