package pagefile

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// plain is a memory for one goroutine.
type plain map[Word]uint64

func (m plain) Load(w Word) uint64     { return m[w] }
func (m plain) Store(w Word, v uint64) { m[w] = v }
func (m plain) Swap(w Word, v uint64) uint64 {
	old := m[w]
	m[w] = v
	return old
}

func (m plain) CompareAndSwap(w Word, old, v uint64) bool {
	if m[w] != old {
		return false
	}
	m[w] = v
	return true
}

func header(t *testing.T, spec string, worker int64) *Header {
	t.Helper()
	h := &Header{
		Place:  Place{Boot: [16]byte{1, 2, 3}, TimeNamespace: 5, Device: 6, Inode: 7, Born: 8},
		Term:   9,
		PoolID: "an id",
		Pool:   "shop",
		PID:    10,
	}
	if err := h.SetLayout(firn.MustLayout(spec), worker, 0, 10*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	h.Base = h.Last(1000)
	return h
}

func TestHeader(t *testing.T) {
	h := header(t, "time:41@1ms,worker:10,seq:12;epoch=2025-01-01T00:00:00Z", 77)
	b, err := h.Encode()
	if err != nil || len(b) != HeaderSize {
		t.Fatal(len(b), err)
	}
	got, err := Decode(b)
	if err != nil || !reflect.DeepEqual(got, h) {
		t.Errorf("%+v, %v\nwant %+v", got, err, h)
	}
	for _, c := range []struct {
		at   int
		to   byte
		says string
	}{{0, 'x', "not a page"}, {atFormat, 9, "format 9"}, {atSize, 1, "damaged"}, {atSeqBits, 63, "damaged"}, {atEven + 7, 1, "damaged"}, {atTick + 7, 255, "damaged"}, {atLanes, 65, "damaged"}, {atLane, 1, "damaged"}} {
		bad := append([]byte(nil), b...)
		bad[c.at] = c.to
		if _, err := Decode(bad); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("byte %d: %v, want %q", c.at, err, c.says)
		}
	}
	if _, err := Decode(nil); err == nil {
		t.Error("an empty file is a page")
	}
	h.Pool = strings.Repeat("x", maxPool)
	if _, err := h.Encode(); err == nil {
		t.Error("a name that has no room is written")
	}
}

// An id of a page is what the layout makes of its parts.
func TestID(t *testing.T) {
	for _, spec := range []string{
		"time:41@1ms,worker:10,seq:12;epoch=2025-01-01T00:00:00Z", "time:39@10ms,seq:8,worker:16;epoch=2025-01-01T00:00:00Z", "time:41@1ms,datacenter:5,worker:5,seq:12;epoch=2025-01-01T00:00:00Z",
		"time:31@1s,worker:5,seq:17;epoch=2025-01-01T00:00:00Z", "seq:12,time:40@1ms,worker:8;epoch=2025-01-01T00:00:00Z",
	} {
		l := firn.MustLayout(spec)
		worker := l.Workers() - 2
		h := &Header{}
		if err := h.SetLayout(l, worker, 0, 0); err != nil {
			t.Fatal(err)
		}
		for _, seq := range []int64{0, 5, 1<<h.SeqBits - 1} {
			p := firn.Parts{Tick: 123456, Worker: worker, Seq: seq}
			p.Time = l.Time(p.Tick)
			want, err := l.Encode(p)
			if got := h.ID(uint64(p.Tick)<<h.SeqBits | uint64(seq)); err != nil || got != want {
				t.Errorf("%s, sequence %d: %d, want %d, %v", spec, seq, got, want, err)
			}
		}
	}
}

func TestLook(t *testing.T) {
	h := &Header{Tick: 100, SeqBits: 4, Even: 15, Ahead: 200}
	const horizon = 20<<4 - 1
	for _, c := range []struct {
		name                  string
		word, horizon, above  uint64
		now                   int64
		n, wantFirst, wantEnd uint64
		want                  Answer
	}{
		{"the next of this tick", 10<<4 | 3, horizon, 0, 1050, 1, 10<<4 | 4, 10<<4 | 4, Take},
		{"the clock is ahead: low bits run on", 9<<4 | 3, horizon, 0, 1250, 1, 12<<4 | 4, 12<<4 | 4, Take},
		{"the next tick ahead of the clock", 10<<4 | 15, horizon, 0, 1050, 1, 11 << 4, 11 << 4, Take},
		{"as far ahead as allowed", 11<<4 | 15, horizon, 0, 1000, 1, 12 << 4, 12 << 4, Take},
		{"too far ahead", 12<<4 | 15, horizon, 0, 1099, 1, 13 << 4, 0, Wait},
		{"some at once", 10<<4 | 3, horizon, 0, 1050, 5, 10<<4 | 4, 10<<4 | 8, Take},
		{"as many as the clock allows", 10<<4 | 3, horizon, 0, 1050, 500, 10<<4 | 4, 12<<4 | 15, Take},
		{"as many as the horizon allows", 10<<4 | 3, 11<<4 - 1, 0, 1050, 500, 10<<4 | 4, 10<<4 | 15, Take},
		{"the horizon is used up", horizon, horizon, 0, 1999, 1, 20 << 4, 0, Ended},
		{"the clock is above the horizon", 10<<4 | 3, horizon, 0, 2000, 1, 10<<4 | 4, 0, Ended},
		{"a clock far in the future", 10<<4 | 3, horizon, 0, 1<<63 - 1, 1, 10<<4 | 4, 0, Ended},
		{"a clock before the epoch", 10<<4 | 3, horizon, 0, -1 << 63, 1, 10<<4 | 4, 0, Wait},
		{"above another page", 10<<4 | 3, horizon, 11<<4 | 15, 1050, 1, 12 << 4, 12 << 4, Take},
		{"far above another page", 10<<4 | 3, horizon, 15<<4 | 15, 1050, 1, 16 << 4, 0, Wait},
		{"closed", Closed, horizon, 0, 1050, 1, 0, 0, Shut},
	} {
		first, last, do := h.Look(c.word, c.horizon, c.above, c.now, c.n)
		if do != c.want || first != c.wantFirst || last != c.wantEnd {
			t.Errorf("%s: %d to %d, %d; want %d to %d, %d", c.name, first, last, do, c.wantFirst, c.wantEnd, c.want)
		}
	}
}

// Each draw takes the next lane; a client of another page than that of lane 0 stays there.
func TestDraw(t *testing.T) {
	h := header(t, "firn", 77)
	c := &Client{Header: h, Memory: plain{}}
	for _, lanes := range []uint8{0, 1, 3} {
		h.Lanes = lanes
		for i := range uint8(7) {
			if got, want := c.Draw(), i%max(lanes, 1); got != want {
				t.Errorf("draw %d of %d lanes: lane %d, want %d", i, lanes, got, want)
			}
		}
	}
	if h.Lane = 2; c.Draw() != 2 || c.Memory.Load(Draws) != 7 {
		t.Error("a client draws in the page of lane 2")
	}
}

func TestDiffers(t *testing.T) {
	p := Place{Boot: [16]byte{1}, TimeNamespace: 2, Device: 3, Inode: 4, Born: 5}
	if got := p.Differs(p); got != "" {
		t.Error(got)
	}
	for _, q := range []Place{
		{Boot: [16]byte{9}, TimeNamespace: 2, Device: 3, Inode: 4, Born: 5},
		{Boot: [16]byte{1}, TimeNamespace: 9, Device: 3, Inode: 4, Born: 5},
		{Boot: [16]byte{1}, TimeNamespace: 2, Device: 9, Inode: 4, Born: 5},
		{Boot: [16]byte{1}, TimeNamespace: 2, Device: 3, Inode: 9, Born: 5},
		{Boot: [16]byte{1}, TimeNamespace: 2, Device: 3, Inode: 4, Born: 9},
	} {
		if p.Differs(q) == "" {
			t.Errorf("%+v is taken for %+v", q, p)
		}
	}
}

func TestAlike(t *testing.T) {
	h := header(t, "time:41@1ms,worker:10,seq:12;epoch=2025-01-01T00:00:00Z", 77)
	other := *h
	other.Worker, other.Fixed, other.Term, other.Base = 78, 78<<12, 1, 0
	if got := h.Alike(&other); got != "" {
		t.Error(got)
	}
	for name, change := range map[string]func(*Header){
		"pool": func(h *Header) { h.Pool = "mail" }, "pool id": func(h *Header) { h.PoolID = "another" },
		"layout": func(h *Header) { h.Layout += "x" }, "shard": func(h *Header) { h.Shard++ },
	} {
		n := *h
		change(&n)
		if h.Alike(&n) == "" {
			t.Errorf("a client changes to a page of another %s", name)
		}
	}
}

// agent is one whose clients have taken a number of tick 1500.
func agent(t *testing.T) (*Agent, plain, uint64) {
	t.Helper()
	h := header(t, "time:41@1ms,worker:10,seq:12;epoch=2025-01-01T00:00:00Z", 77)
	m := plain{}
	a := NewAgent(h, m, 2000)
	if m[Number] != h.Base || m[Horizon] != h.Last(2000) {
		t.Fatalf("the page begins at %d, up to %d", m[Number], m[Horizon])
	}
	at := uint64(1500)<<h.SeqBits | 5
	m[Number] = at
	if err := a.Check(1500 * h.Tick); err != nil {
		t.Fatal(err)
	}
	return a, m, at
}

func TestAgent(t *testing.T) {
	a, m, at := agent(t)
	a.Extend(1900)
	if m[Horizon] != a.Last(2000) {
		t.Error("the horizon was lowered")
	}
	a.Extend(1 << 62)
	if m[Horizon] != a.Last(a.MaxTick()) {
		t.Errorf("a horizon of %d", m[Horizon])
	}
	if last := a.Close(); last != 1500 || m[Number] != Closed || m[ClosedAt] != at {
		t.Errorf("closed at %d, words %v", last, m)
	}
	horizon := m[Horizon]
	a.Extend(a.MaxTick() + 5)
	if last := a.Close(); last != 1500 || m[Number] != Closed || m[ClosedAt] != at || m[Horizon] != horizon {
		t.Errorf("closed again at %d, words %v", last, m)
	}
}

// A number above the horizon was taken by a client that then refused it.
func TestClosedAboveTheHorizon(t *testing.T) {
	a, m, _ := agent(t)
	m[Number] = a.Last(2005)
	if last := a.Close(); last != 2000 {
		t.Errorf("closed at %d, want the horizon", last)
	}
}

// An agent sees damage, and then says that all up to the horizon may have been issued.
func TestDamaged(t *testing.T) {
	for name, c := range map[string]struct {
		says   string
		damage func(plain)
	}{
		"lowered":           {"lowered", func(m plain) { m[Number] -= 1 << 12 }},
		"closed":            {"closed", func(m plain) { m[Number] = Closed }},
		"the horizon rises": {"horizon", func(m plain) { m[Horizon]++ }},
	} {
		a, m, _ := agent(t)
		c.damage(m)
		err := a.Check(1500 * a.Tick)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		a.Condemn()
		if last := a.Close(); last != 2000 || m[Number] != Closed {
			t.Errorf("%s: closed at %d", name, last)
		}
	}
	a, m, _ := agent(t)
	m[Number] -= 1 << 12
	if last := a.Close(); last != 2000 {
		t.Errorf("lowered and closed without a look: %d, want the horizon", last)
	}
	a, _, _ = agent(t)
	if err := a.Check(450 * a.Tick); err == nil || !strings.Contains(err.Error(), "1.05s ahead") {
		t.Errorf("a word that ran away: %v", err)
	}
}
