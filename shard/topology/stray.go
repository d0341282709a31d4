package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// A StrayError says that the address of a server leads to another database. It is in a [*ServerError].
type StrayError struct {
	Database string // that the address leads to
	Original string // the database beside it that it is a copy of; empty: it is no such copy
	Why      string // it is not the server
	HadNone  bool   // the server has never had a shard, as [Server.HadNone] says
}

func (e *StrayError) Error() string {
	return fmt.Sprintf("its address leads to the database %s, which %s", e.Database, e.Why)
}

// stray returns a [*StrayError] where the view is not of the server of a name, or nil.
func (v *View) stray(name string) error {
	switch {
	case v.Cluster == "":
		return nil // the other servers may know
	case v.Server != name:
		return &StrayError{Database: v.Database, Why: fmt.Sprintf("calls itself %s: the addresses may be exchanged", v.Server)}
	case v.Original != "":
		return &StrayError{Database: v.Database, Original: v.Original, Why: "is a copy of the database " + v.Original + " beside it"}
	}
	return nil
}

// LookAt is [Look] at this server, over a connection to it. The error, a [*ServerError], has a
// [*StrayError] in it where the address of the server leads to another server of the cluster, or to
// a copy of the server's database beside the original.
func (s Server) LookAt(ctx context.Context, q Querier) (*View, error) {
	v, err := Look(ctx, q)
	if err == nil {
		err = v.stray(s.Name)
	}
	if err != nil {
		return nil, &ServerError{s.Name, err}
	}
	return v, nil
}

// Outside returns a [*ServerError] with a [*StrayError] where a server knows of no cluster, as its
// view or the error of the look says, and other servers have it in theirs; else nil.
func (s Server) Outside(v *View, err error, others []*View) error {
	if err != nil && !errors.Is(err, ErrNoCluster) || errors.As(err, new(*UnrecordedError)) || v != nil && v.Cluster != "" {
		return nil
	}
	if !slices.ContainsFunc(others, func(other *View) bool { return other != nil && slices.Contains(other.Servers, s.Name) }) {
		return nil
	}
	why := "is in no cluster, and the other servers have a server " + s.Name + " in theirs"
	return &ServerError{s.Name, &StrayError{Database: s.Config.Database, Why: why, HadNone: s.HadNone(others)}}
}
