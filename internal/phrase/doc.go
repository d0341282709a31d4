// Package phrase writes numbers, times, names and words of a shell as people read them.
//
// It has no state and reads no clock.
package phrase
