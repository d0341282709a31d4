//go:build unix

package lease_test

import (
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/firn-id/firn/lease"
)

// The error of a grant file on a full disk says what to do.
func TestGrantFileOnFullDisk(t *testing.T) {
	err := &lease.GrantFileError{Path: "/run/firn.grant", Err: &fs.PathError{Op: "write", Path: "/run/firn.grant", Err: syscall.ENOSPC}}
	if !strings.Contains(err.Error(), "grant file /run/firn.grant: its disk is full (") || !strings.Contains(err.Error(), "free some space there") {
		t.Error(err)
	}
}
