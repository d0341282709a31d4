package testserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// A Disk is a small file system in memory, which a server has beside its own.
type Disk struct {
	Dir string // of the server's account, and empty
}

// SmallDisk makes a disk of so many bytes for a server. It needs the right to mount, which
// containers often lack. It goes with the server.
func (s *Server) SmallDisk(bytes int64) (*Disk, error) {
	dir, err := os.MkdirTemp(s.dir, "disk-")
	if err != nil {
		return nil, err
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, fmt.Sprintf("size=%d,mode=755", bytes)); err != nil {
		return nil, errors.Join(fmt.Errorf("testserver: mount a small disk: %w", err), os.Remove(dir))
	}
	d := &Disk{Dir: filepath.Join(dir, "data")}
	return d, errors.Join(os.Mkdir(d.Dir, 0o700), give(d.Dir, s.account))
}

// filler is the file that takes the room.
func (d *Disk) filler() string { return filepath.Join(filepath.Dir(d.Dir), "filler") }

// Fill takes all the room that is left.
func (d *Disk) Fill() error {
	f, err := os.Create(d.filler())
	if err != nil {
		return err
	}
	defer f.Close()
	for block := make([]byte, 64<<10); ; {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// Free gives the room back.
func (d *Disk) Free() error { return os.Remove(d.filler()) }

// Remove unmounts the disk. What still has a file of it open keeps that file.
func (d *Disk) Remove() error {
	dir := filepath.Dir(d.Dir)
	if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
		return err
	}
	return os.Remove(dir)
}

// unmount unmounts what is mounted under a directory.
func unmount(dir string) {
	b, _ := os.ReadFile("/proc/self/mounts")
	var points []string
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[1], dir+"/") {
			points = append(points, f[1])
		}
	}
	for _, point := range slices.Backward(points) {
		syscall.Unmount(point, syscall.MNT_DETACH)
	}
}
