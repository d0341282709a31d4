package server_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/store/memory"
)

// anyName are options of a server where each name draws from one lease, with how many
// series it has made.
func anyName(t testing.TB) (o *server.Options, made func() int) {
	t.Helper()
	l, err := lease.Open(t.Context(), memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	n := 0
	return &server.Options{Others: func(name string) (*server.Series, error) {
		n++
		return server.Numbers(name, l, &server.SeriesOptions{Layout: l.State().Layout}), nil
	}}, func() int { return n }
}

func draw(t testing.TB, x *server.Session, name string, n int) []server.Value {
	t.Helper()
	values, err := x.Next(t.Context(), name, nil, n)
	if err != nil || len(values) != n {
		t.Fatalf("%s: %d values, %v", name, len(values), err)
	}
	return values
}

// counted are the values that were counted, by name.
func counted(s *server.Server) map[string]uint64 {
	all := map[string]uint64{}
	for _, one := range s.All() {
		all[one.Name()] = one.Counts().Values
	}
	if rest := s.Rest(); rest != nil {
		all[rest.Name()] = rest.Counts().Values
	}
	return all
}

// The first names have counts of their own; those that come after are served all the same.
func TestOthers(t *testing.T) {
	o, made := anyName(t)
	o.MaxNames = 2
	s := newServer(t, o)
	x := enter(t, s, "")
	seen := map[firn.ID]bool{}
	for i, name := range []string{"b", "a", "b", "c", "d", "a", "c"} {
		for _, v := range draw(t, x, name, i+1) {
			if seen[v.ID] {
				t.Fatalf("%d twice", v.ID)
			}
			seen[v.ID] = true
		}
	}
	if got := fmt.Sprint(counted(s)); got != "map[(others):16 a:8 b:4]" {
		t.Error(got)
	}
	if n := made(); n != 3 {
		t.Errorf("made %d series", n)
	}
	for _, name := range []string{"a b", server.OtherNames} {
		var bad *server.NameError
		if _, err := x.Next(t.Context(), name, nil, 1); !errors.As(err, &bad) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// 100,000 names that somebody makes up keep nobody else from drawing, and the server does
// not grow: neither by names nor by reloads.
func TestMadeUpNames(t *testing.T) {
	const names = 100_000
	o, made := anyName(t)
	s := newServer(t, o)
	x := enter(t, s, "")
	for i := range names {
		draw(t, x, fmt.Sprintf("user:%d", i), 1)
	}
	draw(t, x, "photo", 1)
	for round := range 3 {
		all := counted(s)
		sum := uint64(0)
		for _, n := range all {
			sum += n
		}
		if len(all) != server.DefaultMaxNames+1 || sum != names+1 {
			t.Errorf("%d values of %d names are counted", sum, len(all))
		}
		if n := made(); n > (round+1)*len(all) {
			t.Errorf("made %d series", n)
		}
		if err := s.Replace(o); err != nil {
			t.Fatal(err)
		}
	}
}

// What was counted of a name that is gone is not kept.
func TestCountsGo(t *testing.T) {
	s := newServer(t, nil, flake(t, "photo"))
	draw(t, enter(t, s, ""), "photo", 3)
	for _, names := range [][]*server.Series{{flake(t, "video")}, {flake(t, "photo")}} {
		if err := s.Replace(nil, names...); err != nil {
			t.Fatal(err)
		}
	}
	if got := fmt.Sprint(counted(s)); got != "map[photo:0]" {
		t.Error(got)
	}
}

// A countingForm counts how often it reads a text.
type countingForm struct{ reads int }

func (*countingForm) Append(dst []byte, id firn.ID) ([]byte, error) { return id.AppendText(dst) }
func (f *countingForm) Parse(text string) (firn.ID, error) {
	f.reads++
	return firn.ParseID(text)
}

// anID is one of firn's own layout.
const anID = "250040881120281849"

// Decoding costs what forms and layouts cost, however many names there are.
func TestDecodeOnce(t *testing.T) {
	const names = 1000
	form := &countingForm{}
	one := func(name string) *server.Series {
		return server.Numbers(name, nil, &server.SeriesOptions{Form: form, Layout: firn.Default()})
	}
	var many []*server.Series
	for i := range names {
		many = append(many, one(fmt.Sprintf("s%d", i)))
	}
	o, _ := anyName(t)
	o.MaxNames = names
	others := newServer(t, o)
	for i := range names {
		draw(t, enter(t, others, ""), fmt.Sprintf("s%d", i), 1)
	}
	cost := func(s *server.Server) (reads int, allocs float64) {
		x := enter(t, s, "")
		allocs = testing.AllocsPerRun(100, func() {
			form.reads = 0
			if all, err := x.Decode(anID); err != nil || len(all) != 1 || !all[0].Known {
				t.Fatalf("%+v, %v", all, err)
			}
		})
		return form.reads, allocs
	}
	reads, allocs := cost(newServer(t, nil, many...))
	if _, most := cost(newServer(t, nil, one("s"))); reads != 1 || allocs > most {
		t.Errorf("%d names: the form is read %d times, with %v allocations; of one name %v", names, reads, allocs, most)
	}
	fresh, _ := anyName(t)
	_, most := cost(newServer(t, fresh))
	if _, allocs := cost(others); allocs > most {
		t.Errorf("%d names that clients made: %v allocations; before there were any %v", names, allocs, most)
	}
}

// A token that may decode some names of those that clients make may read their ids.
func TestDecodeOfOthers(t *testing.T) {
	o, _ := anyName(t)
	for rights, want := range map[string]bool{"photo": true, "*": true, "video": false} {
		o.Tokens = []server.Token{{Name: "t", Hash: server.HashToken("t"), Rights: map[string]server.Right{"video": server.Issue}}}
		if want {
			o.Tokens[0].Rights[rights] = server.Decode
		}
		s := newServer(t, o)
		all, err := enter(t, s, "t").Decode(anID)
		if (err == nil) != want || want && !all[0].Known || !want && !errors.Is(err, server.ErrDenied) {
			t.Errorf("rights to %q: %+v, %v", rights, all, err)
		}
	}
}
