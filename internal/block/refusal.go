package block

import "fmt"

// A Refusal says why a Take was granted nothing, though the store answers.
type Refusal struct {
	Why       Reason
	Max, Left int64  // of Ended: no number above Max is granted, and so many are left
	Seen      string // of Lossy: what was seen of the store
	Since     bool   // of Lossy: the store was durable when the series was created
}

// A Reason is why there are no numbers.
type Reason uint8

const (
	Missing Reason = iota // there is no record
	Ended                 // there are too few numbers left
	Lossy                 // the store is lossy, and nobody has accepted that
)

func (e *Refusal) Error() string {
	switch e.Why {
	case Missing:
		return "there is no such series"
	case Ended:
		return fmt.Sprintf("%d numbers are left up to %d", e.Left, e.Max)
	}
	return "the store is lossy: " + e.Seen
}
