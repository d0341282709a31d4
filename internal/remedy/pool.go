package remedy

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/beside"
	"github.com/firn-id/firn/internal/cause"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/pool"
)

// This file is about pools that a store does not have. From says where each setting of the pool
// is from; nil: that is not known.

// Setting is what a person leaves out who wants another value of a setting.
func Setting(from map[string]string, name string) string {
	switch at := from[name]; {
	case at == "" || at == config.Default || strings.HasPrefix(at, "--"):
		return "--" + name
	case strings.Contains(at, ":"):
		return name + " of " + at
	default:
		return at
	}
}

// EnsureNote says what follows where a pool is ensured. Nobody but a person knows which
// workers a lost pool had that neither firn.yaml nor a flag names: with more than those it
// could repeat the ids of a pool in another store.
func EnsureNote(from map[string]string) string {
	if at := from["workers"]; at != "" && at != config.Default {
		return " (" + startsLater + addOutage + ")"
	}
	return " (" + startsLater + ", and with all workers of the layout: if the pool had fewer, name them in that command" + addOutage + ")"
}

// Beside says how a pool of that name can be had beside the others.
func Beside(e *beside.CrowdedError, name string, from map[string]string) string {
	word, text := phrase.ShellWord(name), fmt.Sprintf("with these settings %s could repeat ids of pool %s, which has workers %s. ", name, e.Other.Name, Range(e.Other))
	workers, flag := e.Free, ""
	var words []string
	for _, name := range e.All {
		words = append(words, phrase.ShellWord(name))
	}
	switch {
	case e.Free != "":
		text += "To have a pool of its own, give it workers that no other pool has: if "
	case e.InOther != nil:
		lay, other := phrase.ShellWord(layoutName(e.Layout)), phrase.ShellWord(layoutName(e.Other.Layout))
		workers, flag = e.InOther.Free, " --layout "+other
		text = fmt.Sprintf("pool %s has had every worker, so no worker is left for layout %s. Only if their ids never meet in one table, queue or cache: firn pool ensure %s --may-repeat %s%s. Otherwise leave out --layout %s everywhere, and take layout %s: if ",
			e.Other.Name, lay, word, strings.Join(words, " --may-repeat "), EnsureNote(from), lay, other)
	case e.Leaving != "":
		workers = e.Leaving
		text += fmt.Sprintf("Pool %s is giving up workers %s. First, until it says that it has: firn pool set %s --workers %s. Then, if ", e.Other.Name, e.Leaving, phrase.ShellWord(e.Other.Name), Range(e.Other))
	case e.Big.Name != "":
		lower, upper := beside.Halves(e.Big)
		workers = upper.String()
		if e.Big.Layout != e.Layout { // its workers are its own in every other layout
			flag = " --layout " + phrase.ShellWord(layoutName(e.Big.Layout))
		}
		text += fmt.Sprintf("To have a pool of its own, pool %s has to give it workers. First: firn pool set %s --workers %s. Then, if ", e.Big.Name, phrase.ShellWord(e.Big.Name), lower)
	default:
		return text + fmt.Sprintf("No worker is left for it with this layout. Only if their ids never meet in one table, queue or cache: firn pool ensure %s --may-repeat %s%s", word, strings.Join(words, " --may-repeat "), EnsureNote(from))
	}
	text += fmt.Sprintf("this database was restored, or you are not sure: firn pool ensure %s --workers %s%s ("+startsLater+addOutage+"). Only if no id was ever drawn from %q, here or in a database that this one was restored from: firn pool create %s --workers %s%s --new",
		word, workers, flag, name, word, workers, flag)
	switch at := from["workers"]; {
	case at != "" && at != config.Default:
		text += fmt.Sprintf(". And write %s in %s", workers, Setting(from, "workers"))
	case e.Free != "":
		text += LargestFree(workers)
	}
	return text
}

// LargestFree says where a range of workers is from that a hint offers for a pool that may have
// been there.
func LargestFree(workers string) string {
	return fmt.Sprintf(". %s is only the largest range that no other pool has: if you know the range that the pool had, as from your manifests, give that one", workers)
}

// Elsewhere says where to look before anything is created.
func Elsewhere(e *cause.ElsewhereError) string {
	return fmt.Sprintf("the search_path here is %s, and there is no schema %s. If a name is mistyped, correct it, and create nothing", e.Path, strings.Join(e.Missing, ", "))
}

// Range are the workers of a pool, as a flag says them.
func Range(p pool.Info) string { return fmt.Sprintf("%d-%d", p.First, p.Last) }

func layoutName(l firn.Layout) string { return cmp.Or(l.Name(), l.String()) }
