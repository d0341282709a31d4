package sqlite

import (
	"bufio"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		magic    uint32
		mounted  string
		refused  bool
		volatile bool
	}{
		{magic: unix.EXT4_SUPER_MAGIC},
		{magic: unix.XFS_SUPER_MAGIC},
		{magic: unix.BTRFS_SUPER_MAGIC},
		{magic: unix.OVERLAYFS_SUPER_MAGIC},
		{magic: 0x12345678},
		{magic: unix.TMPFS_MAGIC, volatile: true},
		{magic: unix.RAMFS_MAGIC, volatile: true},
		{magic: unix.NFS_SUPER_MAGIC, refused: true},
		{magic: unix.SMB_SUPER_MAGIC, refused: true},
		{magic: unix.CIFS_SUPER_MAGIC, refused: true},
		{magic: unix.SMB2_SUPER_MAGIC, refused: true},
		{magic: unix.V9FS_MAGIC, refused: true},
		{magic: unix.AFS_SUPER_MAGIC, refused: true},
		{magic: unix.AFS_FS_MAGIC, refused: true},
		{magic: unix.CEPH_SUPER_MAGIC, refused: true},
		{magic: unix.CODA_SUPER_MAGIC, refused: true},
		{magic: unix.OCFS2_SUPER_MAGIC, refused: true},
		{magic: unix.FUSE_SUPER_MAGIC, mounted: "fuse"},
		{magic: unix.FUSE_SUPER_MAGIC, mounted: "fuseblk"},
		{magic: unix.FUSE_SUPER_MAGIC, mounted: "fuse.mergerfs"},
		{magic: unix.FUSE_SUPER_MAGIC, mounted: "fuse.gocryptfs"},
		{magic: unix.FUSE_SUPER_MAGIC, mounted: "fuse.sshfs", refused: true},
		{magic: unix.FUSE_SUPER_MAGIC, mounted: "fuse.glusterfs", refused: true},
		{magic: unix.FUSE_SUPER_MAGIC, mounted: "fuse.ceph-fuse", refused: true},
		{magic: unix.FUSE_SUPER_MAGIC, mounted: "virtiofs", refused: true},
	} {
		h, err := judge(c.magic, c.mounted)
		if (err != nil) != c.refused || h.volatile != c.volatile {
			t.Errorf("%#x %s: %+v, %v", c.magic, c.mounted, h, err)
		}
		if err == nil && h.name == "" {
			t.Errorf("%#x %s has no name", c.magic, c.mounted)
		}
		if err != nil && !strings.Contains(err.Error(), "use a local disk") {
			t.Errorf("%#x %s: what next? %v", c.magic, c.mounted, err)
		}
	}
}

func TestMountType(t *testing.T) {
	const mounts = `22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
36 22 0:31 / /mnt/a\040b rw,nosuid - fuse.sshfs me@host:/dir rw,user_id=0
37 22 0:32 / /mnt/c rw shared:2 master:3 - fuseblk /dev/sdb1 rw
bad line
38 22 0:33 - virtiofs share rw
`
	for dev, want := range map[string]string{
		"0:31":  "fuse.sshfs",
		"0:32":  "fuseblk",
		"254:0": "ext4",
		"0:33":  "virtiofs",
		"0:99":  "fuse",
	} {
		if got := mountType(bufio.NewScanner(strings.NewReader(mounts)), dev); got != want {
			t.Errorf("%s: %s, not %s", dev, got, want)
		}
	}
	if got := fuseType(t.TempDir()); got == "" {
		t.Error("no type")
	}
}
