package ui

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/firn-id/firn/internal/phrase"
)

// Warnings returns a logger that prints warnings as the command does, and after a warning also
// information, which says that it is over. It leaves out errors: they come back from the call that
// fails, and are printed then.
func Warnings(w io.Writer) *slog.Logger {
	return slog.New(&warningHandler{w: w, warned: new(atomic.Bool)})
}

type warningHandler struct {
	w      io.Writer
	attrs  []slog.Attr
	warned *atomic.Bool // something was; shared by all loggers made of the first
}

func (h *warningHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level == slog.LevelWarn || level == slog.LevelInfo && h.warned.Load()
}

func (h *warningHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	add := func(a slog.Attr) bool {
		text := phrase.WithoutPackage(a.Value.String())
		if a.Value.Kind() == slog.KindTime {
			text = phrase.Instant(a.Value.Time())
		}
		if err, ok := a.Value.Any().(error); ok {
			text = phrase.Reason(err)
		}
		key := a.Key
		if key == "why" {
			key = "because"
		}
		fmt.Fprintf(&b, ", %s %s", key, text)
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	text := r.Message + strings.Replace(b.String(), ", ", ": ", 1)
	if r.Level == slog.LevelInfo {
		return printOver(h.w, text)
	}
	h.warned.Store(true)
	PrintWarning(h.w, "%s", text)
	return nil
}

func (h *warningHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &warningHandler{w: h.w, attrs: append(h.attrs[:len(h.attrs):len(h.attrs)], attrs...), warned: h.warned}
}

func (h *warningHandler) WithGroup(string) slog.Handler { return h }

// printOver prints that what a warning said is over.
func printOver(w io.Writer, text string) error {
	if asJSON(w) {
		return PrintNote(w, "%s", text)
	}
	_, err := fmt.Fprintf(w, "firn: %s\n", withoutKeys(text))
	return err
}
