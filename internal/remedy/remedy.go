// Package remedy says what to type where a store has lost something, or lacks it. Package
// doctor and the command firn share its texts.
//
// A text names commands of firn. The command adds the flags that it was given to each of them.
package remedy

import (
	"strings"
	"time"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/store/open"
)

// Recover is the command that makes a store safe. It says how to find its --numbers, which no hint can know.
func Recover(url string) string {
	command, note := "firn store recover"+StoreFlag(url), ""
	if WithoutPassword(url) != url { // without --store the command would be about the default file
		command, note = "firn store recover --store URL", MaskedNote
	}
	return command + " (it asks first; for sequences and documents it wants --numbers, and says how to find it" + addOutage + ")" + note
}

// NothingLost says which N is enough for [Recover] where a store is recovered only because it could lose
// writes: a counter that lost nothing knows every number that it granted.
const NothingLost = "--numbers 1 is enough only if the store lost nothing while it could lose writes: no server crashed or restarted (a clean restart of PostgreSQL or MySQL loses nothing), no standby or replica was promoted, and no backup or snapshot was put back"

// A command that makes a pool or a store safe waits until processes of before cannot issue ids any
// more. How long that is nothing in a lost store tells, and too little makes ids repeat. Whoever
// knows a budget of more than 5 min says it by [Outage].
const (
	startsLater = "ids start about 5 min later"
	ifLonger    = "add --outage if any process had an outage budget of more than 5 min"
	addOutage   = "; " + ifLonger
)

// Outage makes what follows a command say what comes of --outage, which the command has.
func Outage(text string, outage time.Duration) string {
	text = strings.NewReplacer(addOutage, "", " ("+ifLonger+")", "").Replace(text)
	minutes := strings.TrimSuffix(phrase.Duration(outage), "m") + " min"
	if outage%time.Minute != 0 || outage >= time.Hour {
		minutes = phrase.Duration(outage)
	}
	return strings.Replace(text, startsLater, "ids start about "+minutes+" later", 1)
}

// WrongClock is what to do about two clocks that differ. To set the one that is right would be
// the worse mistake, so it names none.
const WrongClock = "compare both with a clock that you trust, such as that of another host (date -u; SELECT now()), set the one that is wrong, and run this command again"

// Counter is what to do about a counter that stands still because its store may have lost its
// last numbers.
func Counter(err error, url string) []string {
	return Lost(err, url, "if the store was restored, replaced or failed over: stop every process that uses it, then: "+Recover(url))
}

// Backup is what to do about a missing file of which there is a backup.
func Backup(url string) string {
	return "if there is a backup: stop all processes that use the store, put the backup back, then: " + Recover(url)
}

// MaskedNote explains the placeholder of a URL that is not shown.
const MaskedNote = "; URL is the one that you gave: it has a password, which is not shown"

// WithoutPassword is a URL, or NAME=URL, as a hint may show it. A URL with its password
// taken out would be of another user or database for some drivers, so none is shown: what
// a person types without reading is refused.
func WithoutPassword(value string) string {
	if open.Redact(value) == value {
		return value
	}
	if name, _, ok := strings.Cut(value, "="); ok && !strings.ContainsAny(name, ":/?") {
		return name + "=URL"
	}
	return "URL"
}

// StoreFlag is the --store of a hint that has to name its store, whoever types it. It is empty
// for a URL with a password: the command repeats the flag that it was given.
func StoreFlag(url string) string {
	if url == "" || WithoutPassword(url) != url {
		return ""
	}
	return " --store " + phrase.ShellWord(url)
}
