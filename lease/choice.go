package lease

import "github.com/firn-id/firn/internal/term"

// A Choice says which worker a process takes. The zero Choice takes any free one, and
// prefers the one that the process had before under its name. Choices are compared by ==.
type Choice struct {
	kind   term.Choice
	worker int64
}

// Fresh chooses a worker that no process has ever held, as long as the pool has one. It is
// for pools so large that they last. When none is left, [Open] returns a [*FreshError].
func Fresh() Choice { return Choice{kind: term.Fresh} }

// Only chooses worker n and no other. While another process holds it, [Open] waits for up
// to Options.Wait and then returns a [*FullError]. If the pool does not have worker n, Open
// returns a [*WorkerError].
func Only(n int64) Choice { return Choice{term.Insist, n} }

// Prefer chooses worker n if it is free, and any other free one if not. It is for processes
// with a number of their own, such as the pods of a StatefulSet. If the pool does not have
// worker n, [Open] returns a [*WorkerError].
func Prefer(n int64) Choice { return Choice{term.Prefer, n} }

// Only returns the worker if the choice was made by the function [Only].
func (c Choice) Only() (worker int64, ok bool) { return c.worker, c.kind == term.Insist }

// named reports whether the choice names a worker.
func (c Choice) named() bool { return c.kind == term.Insist || c.kind == term.Prefer }
