// Package readme has tests that run what the README shows, as a reader could combine it:
// its Go programs and commands at the same time on one store, in two directories, with two
// layouts, as two users, and beside the server. Nothing repeats an id: each process gives
// ids that no other gives, or is refused with the next step.
package readme
