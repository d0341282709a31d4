package testserver

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A template is a data directory as a server's own tool makes it. Making one
// takes up to seconds, so it is made once and copied; it is kept from run to run,
// under a name that another version or another command line changes.
type template struct {
	name  string
	argv  []string // with %s for the directory
	after func(data string) error
}

// copyTo makes the data directory of s.
func (t template) copyTo(s *Server, data string) error {
	cache, err := cacheDir()
	if err != nil {
		return err
	}
	unlock, err := lock(filepath.Join(cache, t.name+".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	id, err := t.id()
	if err != nil {
		return err
	}
	kept := filepath.Join(cache, t.name+"-"+id)
	if _, err := os.Stat(kept); err == nil {
		return copyTree(kept, data, s.account)
	}
	if err := t.make(s, data); err != nil {
		return err
	}
	old, _ := filepath.Glob(filepath.Join(cache, t.name+"-*"))
	for _, dir := range old {
		os.RemoveAll(dir)
	}
	partial := filepath.Join(cache, t.name+"-partial")
	if err := copyTree(data, partial, nil); err != nil {
		return err
	}
	return os.Rename(partial, kept)
}

func (t template) id() (string, error) {
	info, err := os.Stat(t.argv[0])
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %d %s", t.argv, info.Size(), info.ModTime()))
	return fmt.Sprintf("%x", sum[:6]), nil
}

func (t template) make(s *Server, data string) error {
	argv := make([]string, len(t.argv))
	for i, arg := range t.argv {
		argv[i] = strings.ReplaceAll(arg, "%s", data)
	}
	if err := s.run(argv...); err != nil {
		return err
	}
	if t.after != nil {
		return t.after(data)
	}
	return nil
}

// run runs a tool of the server's to its end, as the server's account.
func (s *Server) run(argv ...string) error { return s.runFor(startTime, argv...) }

// runFor is run for a tool that may take so long.
func (s *Server) runFor(most time.Duration, argv ...string) error {
	out, err := os.Create(filepath.Join(s.dir, "tool.log"))
	if err != nil {
		return err
	}
	defer out.Close()
	p, err := spawn(argv, s.home, out, s.account)
	if err != nil {
		return err
	}
	if !p.wait(most) {
		p.kill()
		err = errors.New("takes too long")
	} else if !p.succeeded() {
		err = errors.New(p.String())
	}
	if err != nil {
		said, _ := os.ReadFile(out.Name())
		return fmt.Errorf("testserver: %s: %w\n%s", filepath.Base(argv[0]), err, said)
	}
	return nil
}

// copyTree copies a directory with its permissions, for an account.
func copyTree(from, to string, account *credential) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			err = os.Mkdir(target, info.Mode().Perm())
		case d.Type().IsRegular():
			err = copyFile(path, target, info.Mode().Perm())
		case d.Type() == fs.ModeSymlink:
			var link string
			if link, err = os.Readlink(path); err == nil {
				err = os.Symlink(link, target)
			}
		}
		if err != nil {
			return err
		}
		return give(target, account)
	})
}

func copyFile(from, to string, mode fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	// Without ReadFrom of the file, which has the kernel copy: that takes twice as long for files as small as these.
	_, err = io.Copy(struct{ io.Writer }{out}, struct{ io.Reader }{in})
	return errors.Join(err, out.Close())
}
