//go:build !linux

package testserver

// A Disk is a small file system in memory, which a server has beside its own.
type Disk struct {
	Dir string // of the server's account, and empty
}

// SmallDisk makes a disk of so many bytes for a server: on Linux only.
func (s *Server) SmallDisk(int64) (*Disk, error) { return nil, errUnsupported }

// Fill takes all the room that is left.
func (d *Disk) Fill() error { return errUnsupported }

// Free gives the room back.
func (d *Disk) Free() error { return errUnsupported }

// Remove unmounts the disk.
func (d *Disk) Remove() error { return errUnsupported }

func unmount(string) {}
