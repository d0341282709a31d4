package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/firn-id/firn"
)

// A conn is a connection to one server. It is used by one goroutine.
type conn struct {
	server  string
	net     net.Conn
	in      *bufio.Reader
	out     []byte
	timeout time.Duration
	until   time.Time   // the deadline
	free    func() bool // of the ctx that ends it
	lists   bool        // the series has no ranges
}

// maxLine is how long a line of an answer may be, and how much is read at a time.
const maxLine = 64 << 10

// dial connects to a server, and shows it the token. When ctx is done the connection
// ends, whatever is under way.
func dial(ctx context.Context, server string, a *address, o *Options) (*conn, error) {
	soon, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	network := "tcp"
	if a.unix {
		network = "unix"
	}
	n, err := new(net.Dialer).DialContext(soon, network, server)
	if err != nil {
		return nil, &downError{server, err}
	}
	if a.tls {
		t := tls.Client(n, configFor(server, o.TLS))
		if err := t.HandshakeContext(soon); err != nil {
			n.Close()
			return nil, &downError{server, err}
		}
		n = t
	}
	c := &conn{server: server, net: n, in: bufio.NewReaderSize(n, maxLine), timeout: o.Timeout}
	c.free = context.AfterFunc(ctx, func() { n.Close() })
	if a.token != "" {
		if err = c.exchange(ctx, 1, c.ok, "AUTH", a.token); err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

func configFor(server string, given *tls.Config) *tls.Config {
	cfg := given.Clone()
	if cfg == nil {
		cfg = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if cfg.ServerName == "" {
		cfg.ServerName, _, _ = net.SplitHostPort(server)
	}
	return cfg
}

// close ends the connection.
func (c *conn) close() {
	c.free()
	c.net.Close()
}

// fetch asks times for n ids of a series. A series that has no ranges is asked for
// lists from then on. With an error it returns the blocks that came before.
func (c *conn) fetch(ctx context.Context, series string, n, times int, born time.Duration) (all []*block, err error) {
	command, read := "FIRN.RANGE", c.readRange
	if c.lists {
		command, read = "FIRN.NEXT", c.readList
	}
	err = c.exchange(ctx, times, func() error {
		b, err := read(n, born)
		if err == nil {
			all = append(all, b)
		}
		return err
	}, command, series, strconv.Itoa(n))
	var reply *Error
	if !c.lists && errors.As(err, &reply) && reply.Code == codeNoRange {
		c.lists = true
		return c.fetch(ctx, series, n, times, born)
	}
	return all, err
}

// codeNoRange is how a server says that a series has no ranges.
const codeNoRange = "WRONGTYPE"

// exchange sends a command so many times, all at once, and has the answers read. Of
// those that are an [*Error] it returns the first. The connection is of no use after
// any other error.
func (c *conn) exchange(ctx context.Context, times int, read func() error, words ...string) error {
	c.setDeadline()
	c.out = c.out[:0]
	for range times {
		c.write(words)
	}
	_, err := c.net.Write(c.out)
	if err != nil {
		return c.failure(ctx, err)
	}
	var first error
	for range times {
		c.setDeadline() // each answer has its time
		err := c.failure(ctx, read())
		var reply *Error
		if err != nil && !errors.As(err, &reply) {
			return err
		}
		first = cmp.Or(first, err)
	}
	return first
}

// write adds a command to what is sent.
func (c *conn) write(words []string) {
	c.out = strconv.AppendInt(append(c.out, '*'), int64(len(words)), 10)
	for _, w := range words {
		c.out = strconv.AppendInt(append(c.out, "\r\n$"...), int64(len(w)), 10)
		c.out = append(append(c.out, "\r\n"...), w...)
	}
	c.out = append(c.out, "\r\n"...)
}

// failure is what callers are told of an error.
func (c *conn) failure(ctx context.Context, err error) error {
	var reply *Error
	var answer *AnswerError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &reply), errors.As(err, &answer):
		return err
	}
	return &downError{c.server, err}
}

// setDeadline gives the server its time to answer, or up to a half more: to move a
// deadline costs a good part of what a request does.
func (c *conn) setDeadline() {
	if now := time.Now(); c.until.Before(now.Add(c.timeout)) {
		c.until = now.Add(c.timeout + c.timeout/2)
		c.net.SetDeadline(c.until)
	}
}

// ok reads the answer to a command that gives nothing.
func (c *conn) ok() error {
	line, err := c.first('+')
	if err == nil && string(line) != "OK" {
		err = c.strange("it says %q and not OK", line)
	}
	return err
}

// readRange reads first, count and step. There may be less in it than was asked for.
func (c *conn) readRange(n int, born time.Duration) (*block, error) {
	if err := c.array(3); err != nil {
		return nil, err
	}
	var v [3]firn.ID
	for i := range v {
		var err error
		if v[i], err = c.id(); err != nil {
			return nil, err
		}
	}
	r := firn.Range{First: v[0], Count: int(v[1]), Step: int64(v[2])}
	switch last := uint64(r.First) + uint64(r.Count-1)*uint64(r.Step); {
	case r.Count > n:
		return nil, c.strange("it gives a range of %d where %d were asked for", r.Count, n)
	case r.Step > maxStep || last > maxID:
		return nil, c.strange("its range of %d numbers from %d by %d is not of ids", r.Count, r.First, r.Step)
	}
	return newRange(born, r), nil
}

const (
	maxID   = 1<<63 - 1
	maxStep = maxID / maxBlock
)

// readList reads n ids.
func (c *conn) readList(n int, born time.Duration) (*block, error) {
	if err := c.array(n); err != nil {
		return nil, err
	}
	ids := make([]firn.ID, n)
	for i := range ids {
		var err error
		if ids[i], err = c.id(); err != nil {
			return nil, err
		}
	}
	return newList(born, ids), nil
}

// array reads that an array of n follows.
func (c *conn) array(n int) error {
	line, err := c.first('*')
	if err == nil && string(line) != strconv.Itoa(n) {
		err = c.strange("it answers with %q values and not with %d", line, n)
	}
	return err
}

// id reads a positive number in a string.
func (c *conn) id() (id firn.ID, err error) {
	size, err := c.line('$')
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(string(size), 10, 8)
	if err != nil {
		return 0, c.strange("it answers with a string of %q bytes, which is no id", size)
	}
	text, err := c.in.Peek(int(n) + len("\r\n"))
	if err != nil {
		return 0, err
	}
	line, ended := bytes.CutSuffix(text, []byte("\r\n"))
	if !ended || id.UnmarshalText(line) != nil || id == 0 {
		return 0, c.strange("%q is no id; a series whose public form or documents are no numbers, or begin with zeros, is for other clients", line)
	}
	c.in.Discard(len(text))
	return id, nil
}

// first reads the first line of an answer. An error that the server sends instead
// is an [*Error].
func (c *conn) first(kind byte) ([]byte, error) {
	if b, err := c.in.Peek(1); err != nil {
		return nil, err
	} else if b[0] != '-' {
		return c.line(kind)
	}
	line, err := c.line('-')
	if err != nil {
		return nil, err
	}
	code, text, _ := bytes.Cut(line, []byte(" "))
	return nil, &Error{Server: c.server, Code: string(code), Text: string(text)}
}

// line reads a line that begins with kind, and returns what is between that and its
// end. It is good until the next is read.
func (c *conn) line(kind byte) ([]byte, error) {
	line, err := c.whole()
	if err == nil && (len(line) == 0 || line[0] != kind) {
		return nil, c.strange("it answers %.80q, which is not what firn says", line)
	}
	if err != nil {
		return nil, err
	}
	return line[1:], nil
}

// whole reads a line without its end.
func (c *conn) whole() ([]byte, error) {
	line, err := c.in.ReadSlice('\n')
	switch {
	case err == nil:
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, c.strange("a line of more than %d bytes", maxLine)
	default:
		return nil, err
	}
	line, ok := bytes.CutSuffix(line, []byte("\r\n"))
	if !ok {
		return nil, c.strange("a line that does not end in CR LF")
	}
	return line, nil
}

func (c *conn) strange(format string, args ...any) error {
	return &AnswerError{c.server, fmt.Sprintf(format, args...)}
}
