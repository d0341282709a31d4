package resp

import (
	"slices"

	"github.com/firn-id/firn/server"
)

// A group is draws of one series that follow one another in a pipeline. They are one
// draw from the source; each has its own answer, in the order in which they came.
type group struct {
	series string
	values int
	asked  []asked
	each   []int // how many values each of them wants
}

// asked is what one command of a group wants.
type asked struct {
	values int
	form   form
	mute   bool // there is to be no answer
}

// A form is how a command is answered.
type form uint8

const (
	asNumber form = iota // INCR
	asText               // FIRN.NEXT name
	asTexts              // FIRN.NEXT name n
)

// draw puts a command into the group. What is there of another series, or is to be
// answered as a number while this is not, is answered before; and so is what would be
// too much for one draw.
func (c *conn) draw(series []byte, n int, as form) {
	g := &c.group
	if len(g.asked) > 0 && (string(series) != g.series || n > c.server.MaxBatch()-g.values ||
		(as == asNumber) != (g.asked[0].form == asNumber)) {
		c.flush()
	}
	if string(series) != g.series {
		g.series = string(series)
	}
	g.asked = append(g.asked, asked{n, as, c.hush})
	g.values += n
}

// flush answers the group.
//
// Where the source fails in between, the commands that it gave all they want are
// answered, and the others have its error.
func (c *conn) flush() {
	g := &c.group
	if len(g.asked) == 0 {
		return
	}
	if cap(c.out) > 2*flushAt { // it may be long until that is needed again
		c.out = slices.Clone(c.out)
	}
	var room []server.Value // for many, it is made when it is their turn
	if g.values <= fewValues {
		room = c.values[:0]
	}
	values, err := c.gather(g, room)
	if g.values <= fewValues {
		c.values = values[:0]
	}
	for _, a := range g.asked {
		if a.values > len(values) {
			if !a.mute {
				c.failure(err)
			}
			values = nil
			continue
		}
		if !a.mute {
			c.given(values[:a.values], a.form)
		}
		values = values[a.values:]
	}
	g.clear()
}

// fewValues are so few that room for them is kept.
const fewValues = 256

func (g *group) clear() { g.asked, g.values = g.asked[:0], 0 }

// gather draws what the group wants. On an error it returns what it got until then.
func (c *conn) gather(g *group, dst []server.Value) ([]server.Value, error) {
	if g.asked[0].form == asNumber {
		s, err := c.session.Series(c.ctx, g.series, server.Issue, len(g.asked))
		if err != nil {
			return dst, err
		}
		if !s.Numeric() {
			return dst, errTexts
		}
	}
	g.each = g.each[:0]
	for _, a := range g.asked {
		g.each = append(g.each, a.values)
	}
	return c.session.Gather(c.ctx, g.series, dst, g.each)
}

// given answers one command of a group.
func (c *conn) given(values []server.Value, as form) {
	switch as {
	case asNumber:
		if _, ok := values[0].Number(); !ok {
			c.failure(errTexts) // since gather looked at the series, it became another
			return
		}
		c.number(values[0], c.safe)
	case asText:
		c.value(values[0])
	case asTexts:
		c.array(len(values))
		for _, v := range values {
			c.value(v)
		}
	}
}
