// Package torture has the black-box tests of everything together: real
// processes, real stores and their servers, real signals, clocks that step. Its
// tests start many copies of the program in holder, and of the command, do them
// and their store harm, and then look at every id that any of them issued.
//
// What it exports is for the program: the ledger in which a process writes down
// what it issued so that a kill loses nothing, and the events it prints.
//
// The tests run on Linux. Those that need root or a facility of the kernel say so
// where it is missing. By default they take a minute or two; long forms are asked
// for by the environment. Mixed does all harm at random to a SQLite file; Leader,
// Failover and Wiped are about stores of several servers, and about those that
// forget, and run in the long form only:
//
//	FIRN_TORTURE=10m go test ./internal/torture -run Mixed -timeout 20m -v
//	FIRN_TORTURE=5m go test ./internal/torture -run 'Leader|Failover|Wiped' -timeout 60m -v
//	FIRN_TORTURE_SEED=... # the choice of faults of an earlier run, again
//	FIRN_TORTURE_RACE=1   # the programs are built with the race detector
package torture
