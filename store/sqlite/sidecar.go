package sqlite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sidecarFormat is the newest format of the sidecar this package knows.
const sidecarFormat = 1

// A sidecar is what the file beside the database says about it.
type sidecar struct {
	V     int    `json:"v"`
	Store string `json:"store"` // the id inside the database
	identity
	Lost string `json:"lost,omitempty"` // what was lost while the file stayed
	Note string `json:"note,omitempty"` // for who finds the file

	writes int64 // that were acknowledged, at the least; see mark.go
}

const sidecarNote = "firn keeps this beside its database, to notice when that is removed or replaced; see: firn store recover"

// An identity tells a file from every other of its file system, those before
// and after it included.
type identity struct {
	Inode uint64 `json:"inode"`
	Born  int64  `json:"born_ns,omitempty"` // Unix time in ns; 0 where the file system does not say
}

func (a identity) same(b identity) bool {
	return a.Inode == b.Inode && (a.Born == b.Born || a.Born == 0 || b.Born == 0)
}

func (a identity) String() string {
	if a.Born == 0 {
		return fmt.Sprintf("inode %d", a.Inode)
	}
	return fmt.Sprintf("inode %d born %d", a.Inode, a.Born)
}

func (at location) readSidecar() (sidecar, error) {
	b, err := os.ReadFile(at.sidecar())
	if err != nil {
		return sidecar{}, err
	}
	var s sidecar
	said, mark, _ := bytes.Cut(b, []byte("\n"))
	err = json.Unmarshal(said, &s)
	if err == nil && s.V > sidecarFormat {
		return sidecar{}, fmt.Errorf("%s was written by a newer firn (format %d, this one knows %d); use that firn", at.sidecar(), s.V, sidecarFormat)
	}
	known := json.NewDecoder(bytes.NewReader(said))
	known.DisallowUnknownFields() // the name of one that a disk has changed: what it says would be missing
	if err != nil || known.Decode(new(sidecar)) != nil || s.V < 1 || s.Store == "" {
		return sidecar{}, fmt.Errorf(`%s is damaged; if the database is the right one, "firn store recover" writes it anew`, at.sidecar())
	}
	s.writes = parseMark(mark)
	return s, nil
}

// leftSidecar returns the sidecar that was left behind when the file was renamed: one in its
// directory that is about this very file. It is "" where there is none.
func (at location) leftSidecar() string {
	now, err := identify(at.file)
	if err != nil || now.Born == 0 { // an inode alone may be another file's by now
		return ""
	}
	dir := filepath.Dir(at.file)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	for _, e := range entries {
		base, hidden := strings.CutPrefix(e.Name(), ".")
		base, ours := strings.CutSuffix(base, ".id")
		if !hidden || !ours || base == "" {
			continue
		}
		old := location{file: filepath.Join(dir, base)}
		if s, err := old.readSidecar(); err == nil && s.Lost == "" && s.identity == now {
			return old.sidecar()
		}
	}
	return ""
}

// addSidecar writes the sidecar, or returns os.ErrExist if there is one.
func (at location) addSidecar(s sidecar) error { return at.writeSidecar(s, os.Link) }

// replaceSidecar writes the sidecar, whether or not there is one.
func (at location) replaceSidecar(s sidecar) error { return at.writeSidecar(s, os.Rename) }

// writeSidecar writes s under another name, and lets place give it its own.
func (at location) writeSidecar(s sidecar, place func(old, new string) error) error {
	s.Note = sidecarNote
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	name := at.temporary()
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer os.Remove(name) // already gone after a rename
	defer f.Close()
	// Not a secret, and everybody who may write the database has to write it too: a service,
	// even if root was the last who wrote it.
	if err := at.share(name); err != nil {
		return err
	}
	if _, err := f.Write(fmt.Appendf(b, "\n%s", formatMark(s.writes))); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return place(name, at.sidecar())
}
