// Package pagefile is the format of a shared page and the rules by which ids are taken from it, without a file, a
// clock or a process. Package page keeps pages in mapped files; clients/c/firn.h has the same rules in C.
//
// An agent holds a lease and writes a page. Clients map the page and take numbers from it. A number is a tick
// and a sequence: tick << SeqBits | sequence. docs/decisions/0054 has the rules, and says why nothing repeats.
package pagefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/firn-id/firn"
)

// Size is that of a page, in bytes. The header takes the first HeaderSize.
const (
	Size       = 4096
	HeaderSize = 1024
)

// format is the one that this package writes and reads.
const format = 1

const magic = "firnpage"

// Sizes of texts, in bytes. A text ends at its first zero byte.
const (
	maxPoolID = 64
	maxPool   = 256
	maxLayout = 512
)

// MaxLanes is the highest number of lanes that an agent may have.
const MaxLanes = 64

// A Header is the part of a page that never changes.
type Header struct {
	Place

	Worker int64
	Shard  int64
	Term   uint64 // of the worker
	Base   uint64 // highest number that is not of this page

	Tick      int64  // nanoseconds
	Fixed     uint64 // worker and shard, where an id has them
	Even      uint64 // bits of the sequence that run on from tick to tick
	Ahead     int64  // nanoseconds that a number may be ahead of the clock
	SeqBits   uint8
	SeqShift  uint8
	TimeShift uint8
	PID       uint64 // of the agent, for people
	Lanes     uint8  // how many pages the agent has; 0 means 1
	Lane      uint8  // which of them this is: 0 is the one at the agent's path, n the one at that path with .n after it

	PoolID string
	Pool   string
	Layout string
}

// A Place tells the file of a page, in this run of the system, from every other file and from its copies.
type Place struct {
	Boot          [16]byte // of random(4)
	TimeNamespace uint64   // zero: the kernel has none
	Device, Inode uint64
	Born          int64 // nanoseconds since 1970; zero: the file system does not say
}

// Differs says what tells one place from another, in words; empty where they are the same.
func (p Place) Differs(q Place) string {
	switch {
	case p.Boot != q.Boot:
		return "the system was started again since, or it is of another host"
	case p.TimeNamespace != q.TimeNamespace:
		return "it is of another time namespace"
	case p.Device != q.Device || p.Inode != q.Inode || p.Born != q.Born:
		return "it is a copy"
	}
	return ""
}

// SetLayout sets what follows from the layout, the worker, the shard and from how far ids may run ahead of
// the clock. It returns an error where a page cannot have such a layout.
func (h *Header) SetLayout(l firn.Layout, worker, shard int64, ahead time.Duration) error {
	h.Layout, h.Worker, h.Shard, h.Tick, h.Fixed = l.String(), worker, shard, int64(l.Unit()), 0
	rest := 0
	for f := range l.Fields() {
		if f.IsWorker() {
			rest += f.Width
		}
	}
	for f := range l.Fields() {
		switch {
		case f.Name == "time":
			h.TimeShift = uint8(f.Shift)
		case f.Name == "seq":
			h.SeqBits, h.SeqShift = uint8(f.Width), uint8(f.Shift)
		case f.Name == "shard":
			h.Fixed |= uint64(shard) << f.Shift
		default:
			rest -= f.Width
			h.Fixed |= uint64(worker) >> rest & (1<<f.Width - 1) << f.Shift
		}
	}
	// As a firn.Generator: the low bits run on from tick to tick, so that ids spread evenly over id % 2^n however many are taken in a tick. Where
	// nothing may run ahead, a tick starts in its first quarter.
	h.Ahead = max(int64(ahead), 0) / h.Tick * h.Tick
	even := int(h.SeqBits)
	if h.Ahead == 0 {
		even = max(even-2, 0)
	}
	h.Even = 1<<even - 1
	if len(h.Layout) >= maxLayout {
		return fmt.Errorf("its layout has %d bytes, and a page has room for %d", len(h.Layout), maxLayout-1)
	}
	return nil
}

// LanePath is the path of a lane's page: that of the agent for lane 0, and else that with a dot and the lane after it.
func LanePath(path string, lane uint8) string {
	if lane == 0 {
		return path
	}
	return fmt.Sprintf("%s.%d", path, lane)
}

// Last returns the last number of a tick.
func (h *Header) Last(t firn.Tick) uint64 { return uint64(t+1)<<h.SeqBits - 1 }

// TickOf returns the tick of a number.
func (h *Header) TickOf(number uint64) firn.Tick { return firn.Tick(number >> h.SeqBits) }

// MaxTick is the highest tick that a horizon of a page may have: nanoseconds since the epoch are 64-bit
// numbers in clients.
func (h *Header) MaxTick() firn.Tick { return firn.Tick(math.MaxInt64/2/h.Tick - 1) }

// ID returns the id of a number.
func (h *Header) ID(number uint64) firn.ID {
	return firn.ID(number>>(h.SeqBits&63)<<(h.TimeShift&63) | h.Fixed | number&(1<<(h.SeqBits&63)-1)<<(h.SeqShift&63))
}

// Alike says why a client of page h must not change to page n by itself; empty where it may.
func (h *Header) Alike(n *Header) string {
	switch {
	case h.Pool != n.Pool:
		return fmt.Sprintf("it is of pool %q now, and was of pool %q", n.Pool, h.Pool)
	case h.PoolID != n.PoolID:
		return fmt.Sprintf("it is of another pool %q now", n.Pool)
	case h.Layout != n.Layout || h.Shard != n.Shard:
		return fmt.Sprintf("it has layout %s and shard %d now, and had layout %s and shard %d", n.Layout, n.Shard, h.Layout, h.Shard)
	}
	return ""
}

// Offsets of the header's fields.
const (
	atFormat    = 8
	atSize      = 12
	atBoot      = 16
	atNamespace = 32
	atDevice    = 40
	atInode     = 48
	atBorn      = 56
	atWorker    = 64
	atShard     = 72
	atTerm      = 80
	atBase      = 88
	atTick      = 96
	atFixed     = 104
	atEven      = 112
	atAhead     = 120
	atSeqBits   = 128
	atSeqShift  = 129
	atTimeShift = 130
	atLanes     = 131
	atLane      = 132
	atPID       = 136
	atPoolID    = 192
	atPool      = 256
	atLayout    = 512
)

// Encode returns the header as it stands in a page.
func (h *Header) Encode() ([]byte, error) {
	for _, text := range []struct {
		what, is string
		most     int
	}{{"pool id", h.PoolID, maxPoolID}, {"pool name", h.Pool, maxPool}, {"layout", h.Layout, maxLayout}} {
		if len(text.is) >= text.most {
			return nil, fmt.Errorf("%s of %d bytes: a page has room for %d", text.what, len(text.is), text.most-1)
		}
	}
	b := make([]byte, HeaderSize)
	put := binary.LittleEndian.PutUint64
	copy(b, magic)
	binary.LittleEndian.PutUint32(b[atFormat:], format)
	binary.LittleEndian.PutUint32(b[atSize:], Size)
	copy(b[atBoot:], h.Boot[:])
	put(b[atNamespace:], h.TimeNamespace)
	put(b[atDevice:], h.Device)
	put(b[atInode:], h.Inode)
	put(b[atBorn:], uint64(h.Born))
	put(b[atWorker:], uint64(h.Worker))
	put(b[atShard:], uint64(h.Shard))
	put(b[atTerm:], h.Term)
	put(b[atBase:], h.Base)
	put(b[atTick:], uint64(h.Tick))
	put(b[atFixed:], h.Fixed)
	put(b[atEven:], h.Even)
	put(b[atAhead:], uint64(h.Ahead))
	b[atSeqBits], b[atSeqShift], b[atTimeShift] = h.SeqBits, h.SeqShift, h.TimeShift
	b[atLanes], b[atLane] = h.Lanes, h.Lane
	put(b[atPID:], h.PID)
	copy(b[atPoolID:], h.PoolID)
	copy(b[atPool:], h.Pool)
	copy(b[atLayout:], h.Layout)
	return b, nil
}

// Decode reads a header. An error says why the bytes are no page that this package can use.
func Decode(b []byte) (*Header, error) {
	if len(b) < HeaderSize || string(b[:len(magic)]) != magic {
		return nil, errors.New("it is not a page")
	}
	if n := binary.LittleEndian.Uint32(b[atFormat:]); n != format {
		return nil, fmt.Errorf("it has format %d, and this firn reads format %d", n, format)
	}
	get := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	text := func(at, most int) string {
		s, _, _ := bytes.Cut(b[at:at+most], []byte{0})
		return string(s)
	}
	h := &Header{
		Place: Place{
			Boot: [16]byte(b[atBoot:]), TimeNamespace: get(atNamespace),
			Device: get(atDevice), Inode: get(atInode), Born: int64(get(atBorn)),
		},
		Worker: int64(get(atWorker)), Shard: int64(get(atShard)), Term: get(atTerm), Base: get(atBase),
		Tick: int64(get(atTick)), Fixed: get(atFixed), Even: get(atEven), Ahead: int64(get(atAhead)),
		SeqBits: b[atSeqBits], SeqShift: b[atSeqShift], TimeShift: b[atTimeShift], PID: get(atPID),
		Lanes: b[atLanes], Lane: b[atLane],
		PoolID: text(atPoolID, maxPoolID), Pool: text(atPool, maxPool), Layout: text(atLayout, maxLayout),
	}
	if binary.LittleEndian.Uint32(b[atSize:]) != Size || h.SeqBits > 62 || h.SeqShift > 63 || h.TimeShift > 63 ||
		h.Tick <= 0 || h.Tick > math.MaxInt64/4 || h.Ahead < 0 || h.Ahead > int64(firn.MaxBorrow) || h.Even>>h.SeqBits != 0 ||
		h.Lanes > MaxLanes || h.Lane > 0 && h.Lane >= h.Lanes {
		return nil, errors.New("its header is damaged")
	}
	return h, nil
}
