package remedy

import "strings"

// This file is about stores that can lose writes that they acknowledged.

// Durable are the ways to make a store of that URL durable, the safest one first.
func Durable(url string) []string {
	const (
		seen   = "make the store durable: change the settings that the parentheses name, then run this again"
		assume = "only if you know that no crash, restart or failover of this store ever loses a write that it acknowledged, %: write assume=durable in the URL of the store. Where that is wrong, numbers repeat"
	)
	claim := func(such string) string { return strings.Replace(assume, "%", such, 1) }
	if strings.Contains(url, "assume=lossy") {
		return []string{"remove assume=lossy from the URL of the store, if it does not lose writes"}
	}
	switch scheme, _, _ := strings.Cut(url, ":"); scheme {
	case "postgres", "postgresql":
		return []string{
			seen + ". Where they name standbys: set synchronous_standby_names = 'FIRST N (NAME, ...)' with the application_name of each of all N standbys, and synchronous_commit = on, and drop the slots of standbys that never come back",
			claim("because a failover only ever promotes a standby that has every acknowledged write"),
		}
	case "mysql":
		return []string{seen, claim("because a failover only ever promotes a replica that has every acknowledged write")}
	case "redis", "rediss":
		return []string{
			"use another store: firn takes no Redis server for durable, because a replica of it may be promoted that lacks acknowledged writes",
			claim("because it has appendonly yes and appendfsync always, and no replica ever replaces it"),
		}
	}
	return []string{"use a store that keeps what it acknowledged: docs/guides/stores.md"}
}

// Restarted says what to do where a server that can lose writes was restarted, and nothing was lost.
// It is nil for stores of which nobody can say that.
func Restarted(url string) []string {
	if scheme, _, _ := strings.Cut(url, ":"); scheme != "postgres" && scheme != "postgresql" {
		return nil
	}
	return []string{"only if the server has crashed or restarted with fsync and synchronous_commit on, and since then no standby was promoted and no backup put back, so that nothing is lost: make the store durable (synchronous_standby_names = 'FIRST N (NAME, ...)' with all N standbys), and the series then continues"}
}

// BecameLossy is what to do about a counter of a store that can lose writes, and could not when the
// counter was created. Nothing says that the store has lost one: to recover it would leave out numbers,
// and would not make it durable.
func BecameLossy(err error, url string) []string {
	return append(Durable(url), Lost(err, url, "if the store was restored, replaced or failed over, before that: stop every process that uses it, then: "+Recover(url))...)
}

// MayHaveLost is what to do about a counter that has stopped because its store can lose writes, and was
// restarted or replaced.
func MayHaveLost(err error, url string) []string {
	return append(Restarted(url), Counter(err, url)...)
}

// StandbyAway says what to do where commits of PostgreSQL wait for standbys and one of them does not
// confirm. A standby that commits no longer wait for makes the store lossy while it is connected or
// has a slot, so its slot goes first.
const StandbyAway = "start the standby that is away, or see why it does not confirm. Only if it never comes back, was not promoted and never will be: " +
	"drop its slot if it has one (SELECT pg_drop_replication_slot('SLOT')), then take it out of synchronous_standby_names " +
	"(ALTER SYSTEM SET synchronous_standby_names = 'FIRST N (NAME, ...)' with all N standbys that are left, or = '' if none is; SELECT pg_reload_conf()). " +
	"If that standby connects again later, the store can lose writes"
