package install

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"text/template"
	"time"

	"github.com/firn-id/firn"
)

//go:embed generator.sql
var generatorSQL string

//go:embed clock.sql
var clockSQL string

// Parsed when it is needed: each start of the command would wait for that.
var generatorTemplate = sync.OnceValue(parseGenerator)

func parseGenerator() *template.Template {
	t := template.Must(template.New("generator").Parse(generatorSQL))
	template.Must(t.New("clock").Parse(clockSQL))
	return t
}

// SQLVersion is the version of the SQL of [WriteGenerator], [WriteMoves] and [WriteGrants]. It grows
// when that SQL changes after a release. A database says which version its functions have, and the SQL
// of a lower version refuses it.
const SQLVersion = 1

// lockClass is the first number of the advisory locks that generators take: "firn".
const lockClass = 0x6669726e

// openingClass is the first number of the advisory lock of a shard that a mover opens, and openingTime is how long a
// program waits for it. It is longer than most pauses, and shorter than what programs allow a statement.
const (
	openingClass = lockClass + 1
	openingTime  = 100 * time.Millisecond
)

// WriteGenerator writes the SQL that makes a database give ids of a layout: the
// schema firn, with what all shards share. It may be run again.
//
// The layout has the fields time, shard and seq, time first.
func WriteGenerator(w io.Writer, l firn.Layout) error {
	g, err := newGenerator(l)
	if err != nil {
		return err
	}
	return generatorTemplate().Execute(w, g)
}

// CheckLayout says why a database cannot give ids of a layout, or nil.
func CheckLayout(l firn.Layout) error {
	_, err := newGenerator(l)
	return err
}

// A generator is a layout as its SQL needs it.
type generator struct {
	Layout           firn.Layout
	time, shard, seq firn.Field
}

func newGenerator(l firn.Layout) (*generator, error) {
	if !l.IsValid() {
		return nil, errors.New("shard: no layout")
	}
	g := &generator{Layout: l}
	for f := range l.Fields() {
		switch f.Name {
		case "time":
			g.time = f
		case "shard":
			g.shard = f
		case "seq":
			g.seq = f
		default:
			return nil, fmt.Errorf("shard: layout %s: ids made in a database have time, shard and seq, and no %s", name(l), f.Name)
		}
	}
	switch {
	case g.shard.Width == 0:
		return nil, fmt.Errorf("shard: layout %s has no shard", name(l))
	case g.shard.Width > 31:
		return nil, fmt.Errorf("shard: layout %s: a shard of more than 31 bits is not supported in a database", name(l))
	case !l.Ordered():
		return nil, fmt.Errorf("shard: layout %s: the time has to come first, for ids to be ordered by it", name(l))
	case l.Unit() > time.Second:
		return nil, fmt.Errorf("shard: layout %s: a tick of more than a second is not supported in a database", name(l))
	}
	return g, nil
}

func (g *generator) LockClass() int    { return lockClass }
func (g *generator) OpeningClass() int { return openingClass }
func (g *generator) OpeningMs() int64  { return openingTime.Milliseconds() }
func (g *generator) SQLVersion() int   { return SQLVersion }
func (g *generator) MaxShard() int64   { return g.Layout.Shards() - 1 }
func (g *generator) SeqBits() int      { return g.seq.Width }
func (g *generator) PerTick() int64    { return 1 << g.seq.Width }
func (g *generator) TimeShift() int    { return g.time.Shift }
func (g *generator) End() string       { return g.Layout.End().Format(time.RFC3339) }

// SecondStates is how many states a second has, or the layout, if it has fewer.
func (g *generator) SecondStates() int64 {
	return g.statesOf(time.Second)
}

// HourStates and MonthStates are how many states an hour and 30 days have, or the
// layout, if it has fewer.
func (g *generator) HourStates() int64  { return g.statesOf(time.Hour) }
func (g *generator) MonthStates() int64 { return g.statesOf(30 * 24 * time.Hour) }

func (g *generator) statesOf(d time.Duration) int64 {
	return min(int64(d/g.Layout.Unit()), g.LastTick()+1) << g.seq.Width
}

// Limit is the first state that no id can carry.
func (g *generator) Limit() int64 { return (int64(g.Layout.Last()) + 1) << g.seq.Width }

// LastTick is the last tick that an id can carry.
func (g *generator) LastTick() int64 { return int64(g.Layout.Last()) }

// Below are the bits under the time's.
func (g *generator) Below() int64 { return 1<<g.time.Shift - 1 }

// seconds is a duration as SQL has it, exactly.
func seconds(d time.Duration) string {
	s := fmt.Sprintf("%d.%09d", d/time.Second, d%time.Second)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// epoch is the layout's, in seconds since 1970.
func (g *generator) epoch() string {
	e := g.Layout.Epoch()
	if e.Unix() < 0 {
		return "-" + seconds(time.Unix(0, 0).Sub(e))
	}
	return seconds(e.Sub(time.Unix(0, 0)))
}

// Tick is the tick of an instant in seconds since 1970, of type double precision:
// as exact as that is, and cheap. Before the epoch it is the first, and past the end
// of the layout the first that no id can carry, which its state is as well.
func (g *generator) Tick(instant string) string {
	return fmt.Sprintf("least(greatest(floor((%s - %s::double precision) * %s::double precision), 0::double precision), %d::double precision)::bigint",
		instant, g.epoch(), strconv.FormatFloat(float64(time.Second)/float64(g.Layout.Unit()), 'f', -1, 64), g.LastTick()+1)
}

// TickExact is the tick of an instant of type timestamptz, as a numeric, which may be
// infinite.
func (g *generator) TickExact(instant string) string {
	return fmt.Sprintf("floor((extract(epoch FROM %s) - %s::numeric) / %s::numeric)", instant, g.epoch(), seconds(g.Layout.Unit()))
}

// Pack is the id of a state: its tick, the shard and its seq side by side. It is written with as
// few operations as that takes, of which each costs a draw. The state shifted has the seq in its
// place, and the tick too low; what the tick lacks is added.
func (g *generator) Pack(state, shard string) string {
	lacks := int64(1)<<g.time.Shift - int64(1)<<(g.seq.Width+g.seq.Shift)
	return fmt.Sprintf("(%s >> %d) * %d::bigint + %s + %s * %d::bigint",
		state, g.seq.Width, lacks, shifted(state, g.seq.Shift), shard, int64(1)<<g.shard.Shift)
}

func shifted(expression string, by int) string {
	if by == 0 {
		return expression
	}
	return fmt.Sprintf("(%s << %d)", expression, by)
}

// TimeOf is the time of an id. It is counted in two steps: an interval is multiplied
// as a double, which one alone would not be exact for over thousands of years.
func (g *generator) TimeOf(id string) string {
	const step = 20
	return fmt.Sprintf("timestamptz '%s' + (%s >> %d)::double precision * interval '%s seconds' + (%s >> %d & %d::bigint)::double precision * interval '%s seconds'",
		g.Layout.Epoch().Format(time.RFC3339Nano), id, g.time.Shift+step, seconds(g.Layout.Unit()<<step), id, g.time.Shift, 1<<step-1, seconds(g.Layout.Unit()))
}

// ShardOf is the shard of an id.
func (g *generator) ShardOf(id string) string {
	return fmt.Sprintf("(%s >> %d & %d::bigint)::integer", id, g.shard.Shift, g.MaxShard())
}

// SeqOf is the sequence of an id.
func (g *generator) SeqOf(id string) string {
	return fmt.Sprintf("%s >> %d & %d::bigint", id, g.seq.Shift, g.PerTick()-1)
}

// name is what a person calls a layout.
func name(l firn.Layout) string { return cmp.Or(l.Name(), l.String()) }
