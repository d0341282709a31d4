package sqlite

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// identify returns the identity of the file at path.
func identify(path string) (identity, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return identity{}, err
	}
	share := uint32(windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE)
	h, err := windows.CreateFile(name, 0, share, nil, windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
	if err != nil {
		return identity{}, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer windows.CloseHandle(h)
	var fi windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(h, &fi); err != nil {
		return identity{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return identity{
		Inode: uint64(fi.FileIndexHigh)<<32 | uint64(fi.FileIndexLow),
		Born:  fi.CreationTime.Nanoseconds(),
	}, nil
}

// fileSystem says on what kind of volume path is. It returns an error if it is
// one of another host.
func fileSystem(path string) (host, error) {
	root, err := windows.UTF16PtrFromString(filepath.VolumeName(path) + `\`)
	if err != nil {
		return host{}, err
	}
	switch windows.GetDriveType(root) {
	case windows.DRIVE_REMOTE:
		return host{}, remoteError("network drive")
	case windows.DRIVE_RAMDISK:
		return host{name: "a RAM disk", volatile: true}, nil
	}
	return host{name: "a local volume"}, nil
}

// syncDir does nothing: Windows writes names down with the file.
func syncDir(string) error { return nil }

// writable knows nothing here.
func writable(string) error { return nil }

// share does nothing: a new file has the rights of its directory.
func (location) share(string) error { return nil }
