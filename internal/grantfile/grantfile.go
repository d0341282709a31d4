// Package grantfile is the format of a grant file: what a process leaves for the one that starts
// in its place on the same run of the system, which is the grant that it had and a mark in it. Package lease
// keeps it in a file of the system, the simulation on a disk that fails.
//
// The file is one block with a checksum. A block that is damaged or cannot be read is of no use, and
// there is no older one to fall back on: what was issued since that one was written is not known. A process
// that finds no grant to continue takes a worker like any other.
package grantfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/firn-id/firn/internal/holder"
)

// Size is that of the file, in bytes. It is far above what a grant needs: names are bounded by the store.
const Size = 4096

// format is the newest format of the block that this package knows.
const format = 1

// A Place tells a file, in this run of the system, from every other and from its copies.
type Place struct {
	Boot   string `json:"boot"` // run of the system; empty: it does not say
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
}

// An Owner is whose grants are in the file.
type Owner struct {
	Pool   string `json:"pool"`
	Layout string `json:"layout"` // empty, where a file is read: any
	Shard  int64  `json:"shard"`
}

type block struct {
	V int `json:"v"`
	Place
	Owner
	holder.Handover
}

// Read returns what the process before this one left and the layout of its ids, or why there is nothing to
// continue.
func Read(f io.ReaderAt, at Place, of Owner) (left holder.Handover, layout string, err error) {
	b, err := read(f)
	switch {
	case err != nil:
	case b.V != format:
		err = fmt.Errorf("it has format %d, written by another firn", b.V)
	case b.Void:
		err = errors.New("its worker was given back")
	case at.Boot == "":
		err = errors.New("this system does not say when it was started")
	case b.Boot != at.Boot:
		err = errors.New("the system was started again since")
	case b.Device != at.Device || b.Inode != at.Inode:
		err = errors.New("it is a copy")
	case b.Pool != of.Pool || of.Layout != "" && b.Layout != of.Layout || b.Shard != of.Shard:
		err = fmt.Errorf("it is of pool %q, layout %s, shard %d", b.Pool, b.Layout, b.Shard)
	}
	return b.Handover, b.Layout, err
}

func read(f io.ReaderAt) (b block, err error) {
	all := make([]byte, Size)
	n, err := f.ReadAt(all, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return b, fmt.Errorf("it cannot be read: %w", err)
	}
	text := bytes.TrimRight(all[:n], "\x00\n")
	if len(text) == 0 {
		return b, errors.New("it is new")
	}
	sum, text, ok := bytes.Cut(text, []byte{' '})
	if !ok || string(sum) != checksum(text) || json.Unmarshal(text, &b) != nil {
		return b, errors.New("it is damaged")
	}
	return b, nil
}

// Write leaves a handover in the file. After an error the file may be as it was, hold the handover, or be damaged:
// nothing above an earlier mark may be issued, and a worker of which the file may say more is not given back.
func Write(f io.WriterAt, at Place, of Owner, left holder.Handover) error {
	text, err := json.Marshal(block{format, at, of, left})
	if err != nil {
		return err
	}
	all := make([]byte, Size)
	if n := copy(all, checksum(text)+" "+string(text)+"\n"); n == Size {
		return fmt.Errorf("a grant of %d bytes does not fit", len(text))
	}
	_, err = f.WriteAt(all, 0)
	return err
}

func checksum(text []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)))
}
