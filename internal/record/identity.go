package record

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
)

// NewID returns an id for a record that was never written: 128 random bits in hex. By it a
// record that was made anew is told from one that is missing.
func NewID() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Seed returns a random seed for a machine.
func Seed() (b [32]byte) {
	rand.Read(b[:])
	return b
}

// Process returns this process's name for people: host:pid.
func Process() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}
