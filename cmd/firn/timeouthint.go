package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ui"
)

// hintTimeout adds, to the error of a call to PostgreSQL that did not end in time, which command sees
// the likely cause that nothing else shows: commits wait for a standby that is away.
func hintTimeout(cmd *cobra.Command, f *ui.Failure) {
	if cmd == nil || flagOf(cmd, "store") == nil || !errors.Is(f.Err, context.DeadlineExceeded) {
		return
	}
	set, err := loadSettings(cmd)
	if err != nil {
		return
	}
	if scheme, _, _ := strings.Cut(set.StoreURL().Text, ":"); scheme == "postgres" || scheme == "postgresql" {
		f.Hint("to see whether the server waits for a standby that is away: firn doctor")
	}
}
