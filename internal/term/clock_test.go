package term_test

import (
	"testing"
	"time"

	"github.com/firn-id/firn/internal/term"
)

func TestClockFollow(t *testing.T) {
	const skew = 5 * time.Second
	type in struct {
		system time.Duration // ahead of the clock
		known  time.Duration // of the store's, ahead of the clock
		blind  bool          // there is none
	}
	for name, tt := range map[string]struct {
		in
		every time.Duration
		want  time.Duration // moved by, after a second in steps of every
	}{
		"right":                         {in{0, 0, false}, time.Second, 0},
		"ahead, slowly":                 {in{time.Hour, 0, true}, time.Second, time.Second / 20},
		"ahead, in small steps":         {in{time.Hour, 0, true}, 50 * time.Millisecond, time.Second / 20},
		"back, slowly":                  {in{-time.Hour, 0, true}, 100 * time.Millisecond, -time.Second / 20},
		"a little ahead":                {in{10 * time.Millisecond, 0, true}, time.Second, 10 * time.Millisecond},
		"a little back":                 {in{-10 * time.Millisecond, 0, true}, time.Second, -10 * time.Millisecond},
		"ahead, and so is the store's":  {in{time.Hour, time.Hour + skew, false}, time.Second, time.Hour},
		"ahead, the store's less so":    {in{time.Hour, time.Hour - skew, false}, time.Second, time.Hour},
		"ahead by more than that":       {in{time.Hour, time.Hour - skew - 1, false}, time.Second, time.Second / 20},
		"ahead, the store's is not":     {in{time.Hour, 0, false}, time.Second, time.Second / 20},
		"ahead, and ahead of the store": {in{time.Hour, -skew, false}, time.Second, 0},
		"ahead, nearly too far ahead":   {in{time.Hour, 20*time.Millisecond - skew, false}, time.Second, 20 * time.Millisecond},
		"back, and so is the store's":   {in{-time.Hour, -time.Hour, false}, time.Second, -time.Second / 20},
		"back, the store's is not":      {in{-time.Hour, 0, false}, time.Second, -time.Second / 20},
		"back, and behind the store":    {in{-time.Hour, skew, false}, time.Second, 0},
		"it is we who are ahead":        {in{0, -time.Hour, false}, time.Second, 0},
		"it is we who are behind":       {in{0, time.Hour, false}, time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			const began = 100 * time.Hour
			c := term.NewClock(start, began)
			var now time.Duration
			for now < time.Second {
				now += tt.every
				var known time.Time
				if !tt.blind {
					known = start.Add(now + tt.known)
				}
				c = c.Follow(start.Add(now+tt.system), began+now, known, skew)
			}
			if got := c.At(began + now).Sub(start.Add(now)); got != tt.want {
				t.Errorf("moved by %s, not %s", got, tt.want)
			}
			if got := c.At(began + now + time.Minute).Sub(c.At(began + now)); got != time.Minute {
				t.Errorf("a minute is %s", got)
			}
		})
	}
}

// A host whose clock is wrong for good, against the store's, does not lose its
// ids: its clock stays where the store's horizon can follow.
func TestClockOfABadHost(t *testing.T) {
	x := newScript(t)
	a := x.actor("a").until(term.Holding)
	c := term.NewClock(x.instant(), x.time)
	for x.time < 24*time.Hour {
		a.answer()
		c = c.Follow(x.instant().Add(time.Hour), x.time, x.instant(), x.rules.Skew)
		a.ahead = c.At(x.time).Sub(x.instant())
		if g, ok := a.s.Grant(); !ok || g.Horizon < x.rules.Layout.Tick(a.now().Wall) {
			t.Fatalf("after %s the clock is %s ahead and past the grant", x.time, a.ahead)
		}
	}
	if a.ahead > x.rules.Skew {
		t.Errorf("led %s ahead of the store's", a.ahead)
	}
}
