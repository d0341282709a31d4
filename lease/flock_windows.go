package lease

import (
	"errors"
	"os"
	"syscall"
)

// lockFile opens a file that nobody else can open until it is closed, or fails
// at once.
func lockFile(path string) (*os.File, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	const sharedWithNobody = 0
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, sharedWithNobody, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	const sharingViolation = syscall.Errno(32)
	if errors.Is(err, sharingViolation) {
		err = errLocked
	}
	if err != nil {
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil
}

// inode tells a file from its copies.
func inode(f *os.File) (device, number uint64, err error) {
	var info syscall.ByHandleFileInformation
	if err := syscall.GetFileInformationByHandle(syscall.Handle(f.Fd()), &info); err != nil {
		return 0, 0, err
	}
	return uint64(info.VolumeSerialNumber), uint64(info.FileIndexHigh)<<32 | uint64(info.FileIndexLow), nil
}

// diskFull says whether a write failed because no space is left.
func diskFull(err error) bool {
	const handleDiskFull, full = syscall.Errno(39), syscall.Errno(112) // ERROR_HANDLE_DISK_FULL, ERROR_DISK_FULL
	return errors.Is(err, handleDiskFull) || errors.Is(err, full)
}
