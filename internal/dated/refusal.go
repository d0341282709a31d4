package dated

import (
	"fmt"
	"time"
)

// A Refusal says why there are no numbers, though the store answers.
type Refusal struct {
	Why    Reason
	Period string    // of Ended, and what the clock gives of WrongClock
	Left   int64     // of Ended: how many numbers the period has left
	NextAt time.Time // of Ended: when the next period begins; zero without a date, and where no period has room for the call

	Have, Want string // of OtherInstance: which one answers, and which one the series is of; Have of Lossy: what was seen of the store
}

// A Reason is why there are no numbers.
type Reason uint8

const (
	Ended         Reason = iota // the period has too few left
	WrongClock                  // the clock goes to and fro, or is at a year that texts cannot have
	Lossy                       // the store is lossy, and nobody has accepted that
	OtherInstance               // the store is lossy, and is not the one that granted
)

func (e *Refusal) Error() string {
	switch e.Why {
	case Ended:
		return fmt.Sprintf("%d numbers are left of period %q", e.Left, e.Period)
	case WrongClock:
		return fmt.Sprintf("the clock gives the date %q", e.Period)
	case Lossy:
		return "the store is lossy: " + e.Have
	}
	return fmt.Sprintf("the store is %q, and was %q", e.Have, e.Want)
}
