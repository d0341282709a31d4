package record

import (
	"errors"
	"strings"

	"github.com/firn-id/firn/store"
)

// goneFile is what a store in a file says of itself once the file was removed under it.
const goneFile = "the file was removed or moved away"

// Recovery says what whoever runs a store does once the store has lost what it acknowledged.
// Flags are what firn store recover is given besides, and lost what it is given with --lost. Only a
// file tells its URL: a command without one would be about the default file.
func Recovery(err error, flags, lost string) string {
	const stop = "stop all processes that use the store, "
	var forgot *store.ForgotError
	if !errors.As(err, &forgot) || !strings.HasPrefix(forgot.Store, "sqlite:") {
		return stop + "then: firn store recover --store URL" + flags + ", with the URL of the store"
	}
	command := "firn store recover --store '" + strings.ReplaceAll(forgot.Store, "'", `'\''`) + "'"
	if forgot.What != goneFile {
		return stop + "then: " + command + flags
	}
	return "if the file was moved, move it back and restart this process; if there is a backup: " + stop + "put the backup back, then: " + command + flags +
		"; only if the file and all its copies are lost, and it was not moved: " + stop + "then: " + command + " --lost" + lost
}
