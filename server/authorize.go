package server

// Enter returns the session of a token. Without tokens in the server, "" may do
// everything; with them, nothing. A token that is not known is ErrToken. Rights are those
// of the server's tokens at each request: a session that is there when Replace brings the
// first tokens may do nothing from then on, and one that is there when Replace takes away
// all tokens may do everything.
func (s *Server) Enter(token string) (*Session, error) {
	x := &Session{server: s, named: token != ""}
	if x.named {
		x.hash = HashToken(token)
		if x.look().token == nil {
			s.unknown.Add(1)
			return nil, ErrToken
		}
	}
	return x, nil
}

// can returns why the session may not do something with a series, or nil.
func (x *Session) can(v *view, series string, r Right) error {
	switch {
	case len(v.tokens) == 0: // also where Replace has taken away the one that it was entered with
		return nil
	case v.token != nil && v.token.rights(series)&r == r:
		return nil
	case v.token != nil:
		return ErrDenied
	case x.named:
		return ErrToken
	}
	return ErrNoToken
}

// Can returns nil where the session has a right to a series, else ErrNoToken,
// ErrToken or ErrDenied. The series "*" is all that are not named in its token,
// and the server itself.
func (x *Session) Can(series string, r Right) error { return x.can(x.look(), series, r) }
