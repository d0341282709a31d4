package testserver

import (
	"os"
	"os/signal"
	"syscall"
)

// Foreground lets the programs that tests start have these signals at their
// defaults. Tests that run as a job in the background of a shell, or under nohup,
// have them ignored, and what they start would inherit that.
func Foreground() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}
