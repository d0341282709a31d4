package daemon

import (
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// A notifier tells systemd how the server is, if it was started by systemd.
type notifier struct {
	log   *slog.Logger
	watch time.Duration // how often to say that the server lives; 0: nobody asks
}

func newNotifier(log *slog.Logger) *notifier {
	n := &notifier{log: log}
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("systemd asks for a watchdog in a way that cannot be understood", "err", err)
	}
	n.watch = every / 2
	return n
}

func (n *notifier) ready(status string) { n.tell(daemon.SdNotifyReady + "\nSTATUS=" + status) }
func (n *notifier) stopping()           { n.tell(daemon.SdNotifyStopping + "\nSTATUS=stopping") }
func (n *notifier) alive()              { n.tell(daemon.SdNotifyWatchdog) }
func (n *notifier) reloading() {
	n.tell(daemon.SdNotifyReloading + "\n" + daemon.SdNotifyMonotonicUsec())
}

func (n *notifier) beats() <-chan time.Time {
	if n.watch <= 0 {
		return nil
	}
	return time.Tick(n.watch)
}

func (n *notifier) tell(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		n.log.Warn("systemd was not told", "err", err)
	}
}
