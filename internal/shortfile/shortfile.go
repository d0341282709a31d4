// Package shortfile reads a file that a person named and that is short, such as a
// configuration or a certificate. A device, or a log of gigabytes that was named by mistake, is
// refused and does not fill the memory.
package shortfile

import (
	"fmt"
	"io"
	"os"
)

// Max is how many bytes a file may have: more than any configuration, map of shards or bundle of
// certificates has.
const Max = 16 << 20

// Read reads the file at path.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return All(f)
}

// All reads an open file to its end.
func All(f *os.File) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(f, Max+1))
	if err != nil {
		return nil, err
	}
	if len(b) > Max {
		return nil, fmt.Errorf("%s is longer than %d MiB: it is another file than firn needs here", f.Name(), Max>>20)
	}
	return b, nil
}
