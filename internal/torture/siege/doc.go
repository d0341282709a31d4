// Package siege is the long test that harms everything together: real processes, real stores and
// their servers, real signals, clocks that step. It starts many copies of the program in
// holder, and of the command, and then looks at every id that any of them issued.
//
// Run does that by chance, to one store, for as long as is asked for; package main above
// is a command for it. Its tests set up one situation each, such as a file that is
// removed under a process.
//
// All of it runs on Linux. Tests that need root or a facility of the kernel say so where
// it is missing.
package siege
