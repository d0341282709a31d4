package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/firn-id/firn/internal/phrase"
)

// byteSize is the value of a flag that is a number of bytes: 10GB, 512MB or 1000.
type byteSize int64

// byteUnits are those that phrase.Bytes writes.
var byteUnits = []struct {
	name  string
	bytes int64
}{{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1}}

func (n *byteSize) Type() string { return "SIZE" }

func (n *byteSize) String() string {
	if *n == 0 {
		return ""
	}
	return phrase.Bytes(int64(*n))
}

func (n *byteSize) Set(text string) error {
	for _, u := range byteUnits {
		digits, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		v, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || v < 1 || v > 1<<62/u.bytes {
			break
		}
		*n = byteSize(v * u.bytes)
		return nil
	}
	return fmt.Errorf("%q is no size, such as 512MB or 10GB", text)
}
