package ui

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestWarnings(t *testing.T) {
	var b strings.Builder
	log := Warnings(&b).With("pool", "web")
	log.Info("took a worker")
	log.Error("cannot lease a worker")
	log.Warn("lost the worker; taking another", "worker", 3, "err", errors.New("lease: worker 3 was taken away"))
	slog.New(log.Handler()).Warn("once more")
	log.Warn("waiting before the first id", "for", "5m10s", "why", "the store is lossy")
	const want = "firn: warning: lost the worker; taking another: pool web, worker 3, err worker 3 was taken away\n" +
		"firn: warning: once more: pool web\n" +
		"firn: warning: waiting before the first id: pool web, for 5m10s, because the store is lossy\n"
	if b.String() != want {
		t.Errorf("%swant\n%s", b.String(), want)
	}
}

// What a warning said is shown to be over, in the logger's own lines and in JSON.
func TestWarningsEnd(t *testing.T) {
	var b strings.Builder
	log := Warnings(&b)
	log.Info("continues the grant")
	log.With("worker", 3).Warn("store does not answer")
	log.With("worker", 3).Info("the store answers again", "after", time.Second)
	log.Debug("gave the worker back")
	const want = "firn: warning: store does not answer: worker 3\nfirn: the store answers again: worker 3, after 1s\n"
	if b.String() != want {
		t.Errorf("%swant\n%s", b.String(), want)
	}
}
