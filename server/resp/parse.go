package resp

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// A protocolError says that what was sent is not RESP. Nothing after it can be
// understood.
type protocolError string

func (e protocolError) Error() string { return "Protocol error: " + string(e) }

// errPartial: the command is not complete yet.
var errPartial = errors.New("resp: partial")

// parse finds the first command in b, of at most limit bytes: an array of bulk
// strings, or a line of words. It appends its arguments to args, as slices of b, and
// returns how long it is. There may be no arguments: an empty line.
//
// A length that is beyond the limit is refused when it is read, and not when so much
// has come.
func parse(b []byte, args [][]byte, limit int) (used int, _ [][]byte, err error) {
	if len(b) == 0 {
		return 0, args, errPartial
	}
	if b[0] != '*' {
		return parseLine(b, args, limit)
	}
	n, at, err := number(b, 1)
	switch {
	case err != nil:
		return 0, args, badLength("invalid multibulk length", err)
	case n > maxArgs:
		return 0, args, protocolError("invalid multibulk length")
	}
	for range n {
		if at >= len(b) {
			return 0, args, errPartial
		}
		if b[at] != '$' {
			return 0, args, protocolError("expected '$', got " + strconv.QuoteToASCII(string(b[at:at+1])))
		}
		size, from, err := number(b, at+1)
		if err != nil {
			return 0, args, badLength("invalid bulk length", err)
		}
		to := from + size
		if size < 0 || to+2 > limit {
			return 0, args, protocolError(fmt.Sprintf("invalid bulk length: a command has at most %d bytes", limit))
		}
		if to+2 > len(b) {
			return 0, args, errPartial
		}
		if b[to] != '\r' || b[to+1] != '\n' {
			return 0, args, protocolError("a bulk string is longer than its length")
		}
		args = append(args, b[from:to:to])
		at = to + 2
	}
	return at, args, nil
}

func badLength(reason string, err error) error {
	if errors.Is(err, errPartial) {
		return err
	}
	return protocolError(reason)
}

// number reads the digits at b[at:] and the end of line after them. It returns where
// the next line begins.
func number(b []byte, at int) (n, next int, err error) {
	const longest = 8 // digits, beyond any limit
	negative := at < len(b) && b[at] == '-'
	if negative {
		at++
	}
	for i := at; i < len(b); i++ {
		switch digit := b[i] - '0'; {
		case digit <= 9 && i < at+longest:
			n = n*10 + int(digit)
		case b[i] == '\r' && i > at:
			if i+1 == len(b) {
				return 0, 0, errPartial
			}
			if b[i+1] != '\n' {
				return 0, 0, strconv.ErrSyntax
			}
			if negative {
				n = -n
			}
			return n, i + 2, nil
		default:
			return 0, 0, strconv.ErrSyntax
		}
	}
	return 0, 0, errPartial
}

// parseLine finds a command that somebody has typed.
func parseLine(b []byte, args [][]byte, limit int) (used int, _ [][]byte, err error) {
	end := bytes.IndexByte(b[:min(len(b), limit)], '\n')
	if end < 0 {
		if len(b) >= limit {
			return 0, args, protocolError("too big inline request")
		}
		return 0, args, errPartial
	}
	words := b[:end:end]
	for {
		words = bytes.TrimLeft(words, " \t\r")
		if len(words) == 0 {
			return end + 1, args, nil
		}
		if len(args) == maxArgs {
			return 0, args, protocolError("too many arguments")
		}
		n := bytes.IndexAny(words, " \t\r")
		if n < 0 {
			n = len(words)
		}
		args = append(args, words[:n:n])
		words = words[n:]
	}
}
