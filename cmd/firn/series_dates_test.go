package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/ui"
)

const dailyInvoice = "--pattern INV-{yyyyMMdd}-{6} --zone UTC"

// dayText is the text of dailyInvoice so many days from today.
func dayText(days, count int) string {
	return fmt.Sprintf("INV-%s-%06d", time.Now().UTC().AddDate(0, 0, days).Format("20060102"), count)
}

// A clock was a year ahead, so texts of two dates were given out. A new store that begins above the
// later one would repeat all of today: it is refused, and the hint gives each text once.
func TestCreateAfterALaterDate(t *testing.T) {
	dir := emptyHome(t)
	old := "sqlite:" + filepath.Join(dir, "old.db")
	t.Setenv("FIRN_STORE", old)
	today, later := dayText(0, 3), dayText(365, 2)
	mustAll(t, "next inv -n 3 "+dailyInvoice, "series raise inv "+later)
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(dir, "new.db"))
	create := "series create inv " + dailyInvoice + " --after "
	date := func(text string) string { return text[4:12] }
	errs := refusedWith(t, strings.Fields(create+later),
		fmt.Sprintf(`series "inv" cannot begin after %s: its date %s is later than today's, which is %s`, later, date(later), date(today)),
		fmt.Sprintf("the numbers of %s and of all other dates before %s would begin at 1 and repeat", date(today), date(later)),
		"firn series create inv --pattern 'INV-{yyyyMMdd}-{6}' --zone UTC --after TEXT, where TEXT is the last text of "+date(today),
		"Then, before anything is started: firn series raise inv "+later,
		"firn series show inv --store URL")
	if strings.Contains(errs, "document:") {
		t.Error(errs)
	}
	if out, _, code := called(t, "series", "show", "inv"); code == 0 {
		t.Errorf("it was created: %s", out)
	}
	mustAll(t, create+today, "series raise inv "+later)
	if out, errs, _ := called(t, strings.Fields("next inv")...); out != dayText(0, 4)+"\n" {
		t.Errorf("%s%s", out, errs)
	}
}

// The last text of an earlier date is no text of a later one.
func TestCreateAfterAnEarlierDate(t *testing.T) {
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(emptyHome(t), "ids.db"))
	mustAll(t, "series create inv "+dailyInvoice+" --after "+dayText(-30, 7))
	if out, errs, _ := called(t, "next", "inv"); out != dayText(0, 1)+"\n" {
		t.Errorf("%s%s", out, errs)
	}
}

// Each view of a document has the last text of today and of each later date in use: who moves it
// to another store needs all of them.
func TestLastTextOfEachDate(t *testing.T) {
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(emptyHome(t), "ids.db"))
	mustAll(t, "series create inv "+dailyInvoice+" --after "+dayText(-2, 9))
	says := func(args string, want ...string) {
		t.Helper()
		out, errs, code := called(t, strings.Fields(args)...)
		for _, text := range want {
			if code != 0 || !strings.Contains(strings.Join(strings.Fields(out), " "), text) {
				t.Errorf("%s: exit code %d, without %q:\n%s%s", args, code, text, out, errs)
			}
		}
	}
	before, today, later, last := dayText(-2, 9), dayText(0, 3), dayText(30, 5), dayText(365, 2)
	says("series show inv", "last text "+before)
	mustAll(t, "series raise inv "+later)
	says("series ls", "document "+before+", "+later+" - ")
	mustAll(t, "next inv -n 3")
	says("series show inv --json", `"text":"`+later+`","texts":["`+today+`","`+later+`"]`)
	mustAll(t, "series raise inv "+last)
	says("series ls", "document "+today+", "+later+", "+last+" - ")
	date := func(text string) string { return text[4:12] }
	says("series show inv", "last text of "+date(today)+" "+today, "last text of "+date(later)+" "+later, "last text of "+date(last)+" "+last)
}

// A raise to a text that its date is above already says so of that date, also where a recovery has
// raised it, and prints no document.
func TestRaiseOfADateThatIsAbove(t *testing.T) {
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(emptyHome(t), "ids.db"))
	tomorrow, asked := dayText(1, 100), dayText(1, 9)
	mustAll(t, "next inv -n 3 "+dailyInvoice, "series raise inv "+tomorrow)
	out, errs, code := called(t, "series", "raise", "inv", asked, "--json")
	if want := fmt.Sprintf(`"error":"to %s: texts up to %s were granted already"`, asked, tomorrow); code != ui.ExitUsage || out != "" || !strings.Contains(errs, want) {
		t.Errorf("exit code %d, without %s: %s%s", code, want, out, errs)
	}
	refusedWith(t, []string{"series", "raise", "inv", asked},
		"if no text in use anywhere is above "+asked+", there is nothing to raise")
	mustAll(t, "series raise inv "+dayText(1, 101))
}

// A recovery says of each date from today on how far it was, and above which text it continues.
func TestRecoverSaysEachDate(t *testing.T) {
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(emptyHome(t), "ids.db"))
	today, later := dayText(0, 3), dayText(365, 2)
	mustAll(t, "next inv -n 3 "+dailyInvoice, "series raise inv "+later)
	granted := fmt.Sprintf("document inv was last granted numbers, up to 3 (%s), and up to 2 (%s)", today, later)
	_, errs, code := called(t, "store", "recover", "--yes")
	if code != ui.ExitUsage || !strings.Contains(errs, granted) {
		t.Errorf("exit code %d: %s", code, errs)
	}
	out, errs, code := called(t, "store", "recover", "--yes", "--outage", "1s", "--numbers", "100")
	if code != 0 || !strings.Contains(errs, granted) ||
		!strings.Contains(out, ", and in "+later[4:12]+"; it continues above "+dayText(0, 103)+" and "+dayText(365, 102)+"\n") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	if out, errs, _ := called(t, "next", "inv"); out != dayText(0, 104)+"\n" {
		t.Errorf("%s%s", out, errs)
	}
}

// A store that has no text of today is told apart from one that has: numbers of an earlier date are
// not subtracted from those of today.
func TestRecoverWithoutATextOfToday(t *testing.T) {
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(emptyHome(t), "ids.db"))
	mustAll(t, "series create inv "+dailyInvoice+" --after "+dayText(-1, 9))
	_, errs, _ := called(t, "store", "recover", "--yes")
	if want := fmt.Sprintf("document inv was last granted numbers, up to 9 (%s), and none of %s", dayText(-1, 9), dayText(0, 1)[4:12]); !strings.Contains(errs, want) {
		t.Errorf("without %q: %s", want, errs)
	}
	out, errs, _ := called(t, "store", "recover", "--yes", "--outage", "1s", "--numbers", "100")
	if !strings.Contains(out, "; it continues above "+dayText(0, 100)+"\n") {
		t.Errorf("%s%s", out, errs)
	}
	if out, errs, _ := called(t, "next", "inv"); out != dayText(0, 101)+"\n" {
		t.Errorf("%s%s", out, errs)
	}
}

// A counter that is too narrow for today's texts is refused, also where a later date has few.
func TestNarrowerThanTodays(t *testing.T) {
	emptyHome(t)
	mustAll(t, "next inv "+dailyInvoice, "series raise inv "+dayText(0, 1500), "series raise inv "+dayText(1, 5))
	refusedWith(t, strings.Fields("series set inv --pattern INV-{yyyyMMdd}-{3} --zone UTC"), "it was granted texts up to "+dayText(0, 1500)+", and the counter of")
}
