package sqlite

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// identify returns the identity of the file at path.
func identify(path string) (identity, error) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME, &st)
	if err != nil {
		return identity{}, &os.PathError{Op: "statx", Path: path, Err: err}
	}
	id := identity{Inode: st.Ino}
	if st.Mask&unix.STATX_BTIME != 0 {
		id.Born = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	return id, nil
}

// mountedAlone says whether the file at path is a mount point, as containers
// make them of single files.
func mountedAlone(path string) bool {
	mount := func(path string) (uint64, bool) {
		var st unix.Statx_t
		err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_MNT_ID, &st)
		return st.Mnt_id, err == nil && st.Mask&unix.STATX_MNT_ID != 0
	}
	file, ok := mount(path)
	dir, okDir := mount(filepath.Dir(path))
	return ok && okDir && file != dir
}

// remotes are file systems of which another kernel may have the same file open:
// it sees neither the locks nor the shared memory that SQLite's write-ahead log
// needs. Those of clusters and of virtual machines' hosts are among them.
var remotes = map[uint32]string{
	0x00006969: "nfs", 0x0000517b: "smb", 0xff534d42: "cifs", 0xfe534d42: "smb2",
	0x01021997: "9p", 0x5346414f: "afs", 0x6b414653: "afs", 0x00c36400: "ceph",
	0x0bd00bd0: "lustre", 0x0000564c: "ncp", 0x73757245: "coda", 0x01161970: "gfs2",
	0x7461636f: "ocfs2", 0x19830326: "beegfs", 0x47504653: "gpfs", 0x20030528: "orangefs",
	0xaad7aaea: "panfs", 0x786f4256: "vboxsf", 0xbacbacbc: "vmhgfs", 0x7c7c6673: "prl_fs",
}

// locals only have their names here; one that is in neither list is local too.
var locals = map[uint32]string{
	0x0000ef53: "ext", 0x58465342: "xfs", 0x9123683e: "btrfs", 0xf2f52010: "f2fs",
	0xca451a4e: "bcachefs", 0x2fc12fc1: "zfs", 0x794c7630: "overlay",
	magicTmpfs: "tmpfs", magicRamfs: "ramfs", magicFuse: "fuse",
}

const (
	magicFuse  = 0x65735546
	magicTmpfs = 0x01021994
	magicRamfs = 0x858458f6
)

// remotePrograms are those behind FUSE that bring files from elsewhere. FUSE as
// such is allowed: as often it is a local disk (ntfs-3g, mergerfs, gocryptfs),
// for which the kernel keeps locks and shared memory like for any other, and a
// program that is not in this list cannot be told from those.
var remotePrograms = []string{
	"sshfs", "nfs", "smbnetfs", "rclone", "s3fs", "mountpoint-s3", "goofys", "gcsfuse", "blobfuse",
	"juicefs", "glusterfs", "ceph", "mfs", "moosefs", "lizardfs", "saunafs", "seaweedfs", "davfs",
	"curlftpfs", "beegfs", "vmhgfs", "prl", "cvmfs", "hdfs", "alluxio", "afs",
}

// fileSystem says on what kind of file system path is. It returns an error if
// it is one that firn must not use.
func fileSystem(path string) (host, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return host{}, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	magic := uint32(st.Type)
	mounted := ""
	if magic == magicFuse {
		mounted = fuseType(path)
	}
	return judge(magic, mounted)
}

// judge is fileSystem for what the kernel says: the magic number and, of FUSE,
// the type it is mounted as.
func judge(magic uint32, mounted string) (host, error) {
	if name, ok := remotes[magic]; ok {
		return host{}, remoteError(name)
	}
	if magic == magicFuse {
		program, ok := strings.CutPrefix(mounted, "fuse.")
		isRemote := func(p string) bool { return strings.HasPrefix(program, p) }
		if mounted == "virtiofs" || ok && slices.ContainsFunc(remotePrograms, isRemote) {
			return host{}, remoteError(mounted)
		}
		return host{name: mounted}, nil
	}
	name, ok := locals[magic]
	if !ok {
		name = fmt.Sprintf("file system %#x", magic)
	}
	return host{name: name, volatile: magic == magicTmpfs || magic == magicRamfs}, nil
}

// fuseType returns the type under which the FUSE file system of path is
// mounted, such as "fuse.sshfs", "fuseblk" or "virtiofs"; "fuse" if unknown.
func fuseType(path string) string {
	var st unix.Stat_t
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "fuse"
	}
	defer f.Close()
	if err := unix.Stat(path, &st); err != nil {
		return "fuse"
	}
	return mountType(bufio.NewScanner(f), fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev)))
}

// mountType finds the type of device dev ("major:minor") in lines such as
//
//	36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - fuse.sshfs host:/dir rw
func mountType(lines *bufio.Scanner, dev string) string {
	for lines.Scan() {
		before, after, ok := strings.Cut(lines.Text(), " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if ok && len(left) > 2 && left[2] == dev && len(right) > 0 {
			return right[0]
		}
	}
	return "fuse"
}
