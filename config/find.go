package config

import (
	"errors"
	"os"

	"github.com/firn-id/firn/internal/configfile"
	"github.com/firn-id/firn/internal/shortfile"
)

// A Location is where a config is.
type Location struct {
	Path string // "": there is none
	here bool   // nobody named it: it lies in the working directory
}

// Locate finds the file that was said, or, where none was, the first that is there of
// ./firn.yaml, that of the user, and that of the host.
func Locate(said Value) (Location, error) {
	if said.Text != "" {
		if _, err := os.Stat(said.Text); err != nil {
			return Location{}, &ValueError{said.From, &NoFileError{said.Text}}
		}
		return Location{Path: said.Text}, nil
	}
	path, err := configfile.Find()
	if err != nil {
		return Location{}, &FindError{err}
	}
	return Location{path, path == configfile.Here}, nil
}

// Read reads the config; nil where there is none. Nobody obeys one only because it lies in
// the working directory: who can write there could choose the store, and have one's password.
func (p Location) Read() (*File, error) {
	switch {
	case p.Path == "":
		return nil, nil
	case !p.here:
		data, err := shortfile.Read(p.Path)
		if errors.Is(err, os.ErrNotExist) {
			return nil, &NoFileError{p.Path}
		}
		if err != nil {
			return nil, &FindError{err}
		}
		return Parse(p.Path, data)
	}
	f, why, err := openOwn(p.Path)
	if why != "" {
		return nil, &TrustError{p.Path, why}
	}
	if err != nil {
		return nil, &FindError{err}
	}
	defer f.Close()
	data, err := shortfile.All(f)
	if err != nil {
		return nil, &FindError{err}
	}
	return Parse(p.Path, data)
}
