package client

import "time"

// limits say how much may be fetched, and how old it may get.
type limits struct {
	most  int           // ids of an order
	fixed int           // ids of a block, whatever the rate; 0: as many as the rate asks for; 1: none ahead
	age   time.Duration // of an id when it is handed out; 0: any
}

// blocks is how many blocks are to be used up within the time that an id may live.
// Of the ids in hand, two blocks at most, few are dropped then, and a server is
// asked so many times in that time.
const blocks = 4

// burst is how many blocks are asked for together, at most. Where a block lasts less
// than a request takes, several for one request are what keeps calls from waiting, and
// most of what they cost is the request.
const burst = 8

// An order is what to fetch: so many ids, in blocks of a size.
type order struct{ ids, size int }

// A pace says how many ids to ask for, so that nobody waits while the next block
// is fetched. It is a value; the zero pace is that of a start.
type pace struct {
	size  int           // of the last order, in ids
	rate  float64       // ids used in a second
	worst time.Duration // that a request took lately, with all that failed before it
	used  int64         // in all, when the last order was made
	at    time.Duration // when that was; 0: never
}

// next returns the pace when ids are asked for at now, used ids having been handed
// out in all. An order is twice what is used while the next one comes, or what is
// used in a part of the time that an id may live; where the size of a block is
// given, it is one, or several if so many are used while the next ones come. It at
// most doubles, so that a burst at the start does not take much, and at most halves.
func (p pace) next(now time.Duration, used int64, l limits) pace {
	if since := now - p.at; p.at > 0 && since > 0 {
		p.rate = float64(used-p.used) / since.Seconds()
	}
	trip, life := 2*p.rate*p.worst.Seconds(), p.rate*l.lives().Seconds()
	want := min(max(trip, life/blocks), life, float64(l.most))
	if l.fixed > 0 {
		want = min(trip, life/2, float64(burst*l.fixed), float64(l.most))
	}
	p.size = max(min(int(want), 2*p.size), p.size/2, l.fixed, 1)
	p.used, p.at = used, now
	return p
}

// answered returns the pace when what was asked for is there, after it took so long.
func (p pace) answered(took time.Duration) pace {
	p.worst = max(took, p.worst-p.worst/8)
	return p
}

// order is what to ask for now, where calls wait for wanted ids.
func (p pace) order(wanted int, l limits) order {
	n := p.size
	if l.fixed > 0 {
		n = l.fixed
	}
	n = min(max(n, wanted), l.most)
	if !p.ahead(l) {
		return order{n, n}
	}
	return order{max(n, p.size), n}
}

// ahead reports whether to fetch ids that nobody waits for: not if the next call
// is likely to come when they are too old.
func (p pace) ahead(l limits) bool {
	return l.fixed > 1 || l.fixed == 0 && p.rate*l.lives().Seconds() >= 1
}

// lives is how long an id may live; where it may for ever, the time that blocks
// are measured by.
func (l limits) lives() time.Duration {
	if l.age == 0 {
		return defaultMaxAge
	}
	return l.age
}
