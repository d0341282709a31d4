package resp

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/server"
)

// The commands that draw ids and read them.

func (c *conn) incr(args [][]byte) { c.draw(args[1], 1, asNumber) }

func (c *conn) next(args [][]byte) {
	switch len(args) {
	case 2:
		c.draw(args[1], 1, asText)
	case 3:
		if n, ok := c.amount(args[2], c.server.MaxBatch()); ok {
			c.draw(args[1], n, asTexts)
		}
	default:
		c.wrongArity("firn.next")
	}
}

// amount reads how many are asked for, and refuses what is none.
func (c *conn) amount(text []byte, most int) (int, bool) {
	n, err := strconv.ParseInt(string(text), 10, 64)
	switch {
	case err != nil:
		c.refuse("ERR value is not an integer or out of range")
	case n < 1 || n > int64(most):
		c.refuse(overLimit(&server.LimitError{What: "n", Asked: n, Max: int64(most)}))
	default:
		return int(n), true
	}
	return 0, false
}

// incrBy answers the last number of a range, as Redis does: the range is those up to
// it. One number needs no range.
func (c *conn) incrBy(args [][]byte) {
	n, ok := c.amount(args[2], c.server.MaxRange())
	switch {
	case !ok:
		return
	case n == 1:
		c.incr(args)
		return
	}
	c.flush()
	if c.hush {
		return // what nobody hears of is not drawn
	}
	name := string(args[1])
	s, err := c.session.Series(c.ctx, name, server.Issue, 1)
	switch {
	case err != nil:
		c.failure(err)
		return
	case s.Step() == 0:
		c.fail(fmt.Sprintf("WRONGTYPE the numbers of series %s do not follow one another: FIRN.NEXT %s %d gives as many", name, name, n))
		return
	case s.Step() != 1:
		c.fail(fmt.Sprintf("WRONGTYPE the numbers of series %s are %d apart: FIRN.RANGE %s %d says which", name, s.Step(), name, n))
		return
	}
	r, err := c.session.Reserve(c.ctx, name, n)
	if err != nil {
		c.failure(err)
		return
	}
	c.number(server.Value{ID: r.First + firn.ID(r.Count-1)}, c.safe)
}

func (c *conn) rangeOf(args [][]byte) {
	n, ok := c.amount(args[2], c.server.MaxRange())
	if !ok {
		return
	}
	r, err := c.session.Reserve(c.ctx, string(args[1]), n)
	if err != nil {
		c.failure(err)
		return
	}
	c.array(3)
	c.bulk(r.First.String())
	c.bulk(strconv.Itoa(r.Count))
	c.bulk(strconv.FormatInt(r.Step, 10))
}

// decode answers a map for each reading; all that is in it are strings.
func (c *conn) decode(args [][]byte) {
	all, err := c.session.Decode(string(args[1]))
	if err != nil {
		c.failure(err)
		return
	}
	c.array(len(all))
	for _, d := range all {
		pairs := []string{"id", d.ID.String()}
		if d.IsDocument() {
			pairs = documentPairs(d)
		}
		if d.Layout.IsValid() {
			pairs = append(pairs, "layout", d.Name, "time", d.TimeText(), "unix_ms", strconv.FormatInt(d.Time.UnixMilli(), 10))
		}
		for _, f := range d.Fields {
			pairs = append(pairs, f.Name, f.Value())
		}
		if layout, _ := d.SameBits(); layout != "" {
			pairs = append(pairs, "same_bits", layout)
		}
		if d.Form != "" && !d.IsDocument() {
			pairs = append(pairs, "form", d.Form, "text", d.Text)
		}
		c.dictionary(len(pairs) / 2)
		for _, text := range pairs {
			c.bulk(text)
		}
	}
}

// documentPairs are keys and values of a document: those that HTTP has in JSON.
func documentPairs(d server.Decoded) []string {
	pairs := []string{"text", d.Text, "kind", "document"}
	if d.Document.Period != "" {
		pairs = append(pairs, "period", d.Document.Period)
	}
	pairs = append(pairs, "count", strconv.FormatInt(d.Document.Count, 10))
	if d.ID > 0 {
		pairs = append(pairs, "id", d.ID.String())
	}
	if d.Form != "" {
		pairs = append(pairs, "form", d.Form)
	}
	return append(pairs, "series", d.Series)
}

// option sets what is this protocol's alone.
func (c *conn) option(args [][]byte) {
	if !strings.EqualFold(string(args[1]), "STRINGS") || len(args) > 3 {
		c.fail("ERR there is one option: FIRN.OPTION STRINGS [ON|OFF]")
		return
	}
	on := true
	if len(args) == 3 {
		switch strings.ToUpper(string(args[2])) {
		case "ON":
		case "OFF":
			on = false
		default:
			c.fail("ERR FIRN.OPTION STRINGS is ON or OFF")
			return
		}
	}
	c.safe = on
	c.ok()
}
