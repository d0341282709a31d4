package block

import "github.com/firn-id/firn/store"

// A Span is the numbers that one write grants: those above Above and up to To, by the
// counter in the record under Key.
type Span struct {
	Key       string
	Above, To int64
}

// An Own is what a process has been granted by its own writes of a counter, and the write
// whose outcome it does not know. It is what the machines of sequences and of documents
// have in common, and the reason why neither repeats a number:
//
//  1. A span lies above what the record says and ends at what replaces it, in one
//     compare-and-set. So no two writes that were carried out grant one number.
//  2. A span is used only when its write was acknowledged, or when the record was read
//     back and bears the Version of that write. Anything else that is found, be the value
//     the same, is another's write, and the span is thrown away: what is lost that way is
//     numbers.
//  3. A span is handed back only after nothing of it can be issued any more, by
//     compare-and-set on the Version of the own latest grant: so nobody was granted
//     anything since. It goes down to the last number issued, and never below the lowest
//     of the unbroken run of own spans that ends there.
//  4. A record that says less than was acknowledged is that of a store that has forgotten.
//
// The methods change no value; those that have a new one return it.
type Own struct {
	run   Span          // the unbroken run of own spans that ends with the latest
	mine  store.Version // of the write that granted the latest; "" before any
	doubt Span
	tried store.Version // of the write in doubt; "" where there is none
}

// Granted returns the Own once the write that grants a span was carried out under version v.
func (o Own) Granted(s Span, v store.Version) Own {
	if o.mine != "" && o.run.Key == s.Key && o.run.To == s.Above {
		s.Above = o.run.Above
	}
	o.run, o.mine = s, v
	return o
}

// Unknown returns the Own once a write has failed that may have been carried out under the
// version that was tried, or may yet be. A zero version says that nothing was sent: then
// there is nothing to be in doubt about.
func (o Own) Unknown(s Span, tried store.Version) Own {
	if tried != "" {
		o.doubt, o.tried = s, tried
	}
	return o
}

// InDoubt reports whether the outcome of a write is not known. Nothing else may be written
// then before the record was read.
func (o Own) InDoubt() bool { return o.tried != "" }

// Settle returns the Own once the record under key was read at version v, and the span of
// the write that was in doubt. That was carried out, and its span may be used, where the
// record bears its Version. Otherwise the record is another's write, whatever it says: if
// the one in doubt is carried out yet, or was and has been replaced since, its numbers are
// nobody's.
func (o Own) Settle(key string, v store.Version) (settled Own, s Span, done bool) {
	s, done = o.doubt, o.tried != "" && o.doubt.Key == key && o.tried == v
	o.doubt, o.tried = Span{}, ""
	return o, s, done
}

// Top returns the highest number of the counter under key that was granted to this process
// by its latest write, if that was one of that counter.
func (o Own) Top(key string) (top int64, ok bool) {
	return o.run.To, o.mine != "" && o.run.Key == key
}

// HandBack returns to which number the counter can be lowered, at version v, when used is
// the highest number that was issued of it. It reports false where this process was not
// the last to be granted anything, or nothing is left.
func (o Own) HandBack(v store.Version, used int64) (to int64, ok bool) {
	to = max(o.run.Above, used)
	return to, o.mine != "" && v == o.mine && to < o.run.To
}
