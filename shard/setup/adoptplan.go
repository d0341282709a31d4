package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/shard/internal/atonce"
	"github.com/firn-id/firn/shard/topology"
)

// An Adoption says what to do to adopt schemas that made ids before firn.
type Adoption struct {
	Plan      *Plan
	Functions []string // that were asked for; none: all that make ids
	Servers   []AdoptedServer
}

// An AdoptedServer says what is adopted on one server.
type AdoptedServer struct {
	Server  string
	Schemas []AdoptedSchema // by shard, one for each function
	Others  []OtherFunction // that make ids too, and are left as they are
}

// An OtherFunction makes ids by a formula as well, and is not firn's.
type OtherFunction struct {
	Shard        int64
	Schema, Name string
	Outside      bool // it is in no schema of a shard, and a column default of the shard calls it
}

// An AdoptedSchema is a function of a schema that becomes a generator of the shard.
type AdoptedSchema struct {
	Shard    int64
	Schema   string
	Function string
	Sequence string   // that its function draws from now
	Columns  []Column // that ids are in: the generator is opened above all of them
	Grantees []string // who may draw now, and can afterwards

	oid uint32 // of the function
}

// A Column has ids of a schema: its default calls the function, or it is called id
// and is a bigint.
type Column struct {
	Table, Name string // the table with its schema, quoted
	Default     bool
	Indexed     bool
	function    uint32
	schema      string
}

// String names the column, and says so where it has to be read as a whole.
func (c Column) String() string {
	if c.Indexed {
		return c.Table + "." + c.Name
	}
	return c.Table + "." + c.Name + " (no index)"
}

// ErrNoKeys says that Wish.Keys is missing, which a new cluster needs.
var ErrNoKeys = wrong("shard: which shard is a key in? the key scheme has to be said, and never changes")

// maxFaults is how many schemas are named that cannot be taken over.
const maxFaults = 10

// Adopt plans that schemas become shards which have functions that make ids, by a
// formula that is read out of their texts: functions of some names, or all if none is given.
// Nothing is planned unless all can be taken
// over: the layout is everywhere the one that is wished, and each shard there once.
func (s *Servers) Adopt(ctx context.Context, w Wish, functions ...string) (*Adoption, error) {
	if w.Schemas == "" {
		w.Schemas = DefaultSchemas
	}
	if !w.Layout.IsValid() {
		w.Layout = firn.MustLayout("instagram")
	}
	if err := checkSchemas(w.Schemas); err != nil {
		return nil, err
	}
	m, err := clusterOf(s.sites)
	if err != nil {
		return nil, err
	}
	if err := checkClocks(s.sites); err != nil {
		return nil, err
	}
	if err := checkVersions(s.sites); err != nil {
		return nil, err
	}
	if m != nil {
		w.Layout, w.Schemas = m.Layout, m.Schemas
	} else if w.Keys == "" {
		return nil, ErrNoKeys
	}
	a := &Adoption{Functions: functions, Servers: make([]AdoptedServer, len(s.sites))}
	if err := atonce.Each(s.sites, func(i int, t *site) (err error) {
		a.Servers[i], err = t.find(ctx, w, functions)
		return err
	}); err != nil {
		return nil, err
	}
	if m != nil && w.Count == 0 {
		w.Count = m.Keys.Shards()
	}
	if err := a.numbers(s.sites, &w); err != nil {
		return nil, err
	}
	if a.Plan, err = begin(m, w); err != nil {
		return nil, err
	}
	if err := a.Plan.name(s.sites, m); err != nil {
		return nil, err
	}
	if err := forgot(s.sites, m); err != nil {
		return nil, err
	}
	if a.Plan.Roles, err = rolesFor(w.Roles, s.sites); err != nil {
		return nil, err
	}
	a.Plan.place(m, false)
	return a, nil
}

// Steps returns how many functions and shards Run changes.
func (a *Adoption) Steps() int64 {
	n := a.Plan.Steps()
	for _, s := range a.Servers {
		n += int64(len(s.Schemas))
	}
	return n
}

// A CountError says that Wish.Count is missing, or is too low for a shard that was found. What was found does
// not tell how many shards there are, because shards without a schema count too.
type CountError struct {
	Found   int   // schemas
	Highest int64 // shard of them
	Keys    string
	Count   int64 // that was wished
}

func (e *CountError) Error() string {
	if e.Count > 0 {
		return fmt.Sprintf("shard: there is a shard %d, so the cluster has at least %d shards, not %d: the first one is shard 0", e.Highest, e.Highest+1, e.Count)
	}
	why := "the shard of a key (" + e.Keys + ") depends on it"
	if e.Keys == topology.None {
		why = "no shard above it can come later"
	}
	found := "1 schema was"
	if e.Found != 1 {
		found = fmt.Sprintf("%d schemas were", e.Found)
	}
	return fmt.Sprintf("shard: %s found, up to shard %d; say how many shards the cluster has, which never changes: %s", found, e.Highest, why)
}

// numbers checks that each shard is there once, and that they are as many as wished.
func (a *Adoption) numbers(sites []*site, w *Wish) error {
	at := map[int64]string{}
	highest := int64(-1)
	claim := func(n int64, where string) error {
		if other, twice := at[n]; twice && other != where {
			return fmt.Errorf("shard: shard %d is there twice, %s and %s: which one serves? rename the other, or its function", n, other, where)
		}
		at[n], highest = where, max(highest, n)
		return nil
	}
	for i, t := range sites {
		if t.view != nil {
			for _, row := range t.view.Shards {
				if row.State == topology.StateMoved {
					continue
				}
				if err := claim(row.Shard, "on "+t.server.Name+" in "+row.Schema); err != nil {
					return err
				}
			}
		}
		for _, one := range a.Servers[i].Schemas {
			if err := claim(one.Shard, "on "+t.server.Name+" in "+one.Schema); err != nil {
				return err
			}
		}
	}
	if highest < 0 {
		none := &NoFunctionError{Schemas: w.Schemas, Functions: a.Functions}
		for _, s := range a.Servers {
			none.Others = append(none.Others, s.Others...)
		}
		return none
	}
	if highest >= w.Count {
		return &CountError{len(at), highest, w.Keys, w.Count}
	}
	return nil
}

// A NoFunctionError says that no schema has a function that makes ids.
type NoFunctionError struct {
	Schemas   string
	Functions []string        // that were asked for
	Others    []OtherFunction // that make ids there
}

func (e *NoFunctionError) Error() string {
	what := "that makes ids"
	if len(e.Functions) > 0 {
		what = strings.Join(e.Functions, "(), ") + "()"
	}
	return fmt.Sprintf("shard: there is no schema like %s with a function %s", e.Schemas, what)
}

// A found is a function in a schema of the pattern, as the catalog has it.
type found struct {
	schema   string
	name     string
	oid      uint32
	function function
	mine     bool // the function is the user's, and the user may create in the schema
	grantees []string
	definer  bool
	usedIn   []string // schemas with tables that have a column default which calls it
}

// isFirns reports whether it is a function of firn, or a copy of one.
func (f found) isFirns() bool { return strings.Contains(f.function.source, "firn.id(") }

// isNamed reports whether it has a name that says it makes ids, so that it is not passed over where
// its text is not understood.
func (f found) isNamed() bool { return f.name == "next_id" || strings.HasSuffix(f.name, "_next_id") }

// find finds what can be taken over on a server: the functions of some names, or all that make ids. The error
// says of some why they cannot.
func (t *site) find(ctx context.Context, w Wish, names []string) (AdoptedServer, error) {
	result := AdoptedServer{Server: t.server.Name}
	c, err := t.server.Connect(ctx)
	if err != nil {
		return result, err
	}
	defer c.Close(context.WithoutCancel(ctx))
	k := catalog{ctx, c}
	all, err := k.functions()
	if err != nil {
		return result, t.fault("%w", err)
	}
	known := map[string]topology.State{}
	if t.view != nil {
		for _, row := range t.view.Shards {
			known[row.Schema] = row.State
		}
	}
	var faults []error
	var others []found
	for _, f := range all {
		n, ok := numberIn(w.Schemas, f.schema)
		if !ok || known[f.schema] != "" && f.isFirns() || known[f.schema] == topology.StateMoved {
			continue
		}
		_, unread := f.function.formula()
		switch {
		case len(names) == 0 && unread != nil && !f.isNamed():
			continue
		case len(names) > 0 && !slices.Contains(names, f.name):
			if unread == nil {
				result.Others = append(result.Others, OtherFunction{Shard: n, Schema: f.schema, Name: f.name})
				others = append(others, f)
			}
			continue
		}
		one, err := k.schema(f, n, w.Layout)
		if err != nil {
			faults = append(faults, t.fault("%s.%s: %w", f.schema, f.name, err))
		}
		result.Schemas = append(result.Schemas, one)
	}
	if len(faults) == 0 {
		err = k.shared(result.Schemas, others)
	}
	if len(faults) > maxFaults {
		faults = append(faults[:maxFaults:maxFaults], t.fault("%d more", len(faults)-maxFaults))
	}
	if err = errors.Join(append(faults, err)...); err != nil {
		return result, err
	}
	slices.SortStableFunc(result.Schemas, func(a, b AdoptedSchema) int { return int(a.Shard - b.Shard) })
	if err := k.columns(result.Schemas); err != nil {
		return result, t.fault("%w", err)
	}
	return result, nil
}

// numberIn is the number in the name of a schema that was made by a pattern.
func numberIn(pattern, schema string) (int64, bool) {
	before, after, _ := strings.Cut(pattern, "%d")
	rest, ok := strings.CutPrefix(schema, before)
	if !ok {
		return 0, false
	}
	digits, ok := strings.CutSuffix(rest, after)
	n, err := strconv.ParseInt(digits, 10, 32)
	return n, ok && err == nil && n >= 0 && strconv.FormatInt(n, 10) == digits
}

// schema says how a schema is taken over, or why it cannot be.
func (k catalog) schema(f found, n int64, want firn.Layout) (AdoptedSchema, error) {
	one := AdoptedSchema{Shard: n, Schema: f.schema, Function: f.name, Grantees: f.grantees, oid: f.oid}
	g, err := f.function.formula()
	if err != nil {
		return one, fmt.Errorf("it is not understood: %w", err)
	}
	is, err := g.layout()
	switch {
	case err != nil:
		return one, err
	case is.String() != want.String():
		return one, &LayoutError{is, want}
	case g.shard != n:
		return one, fmt.Errorf("its ids say shard %d", g.shard)
	case !f.mine:
		return one, errors.New("the role must own the function, and may create in the schema")
	}
	q, err := k.sequence(f.schema, g.sequence)
	if err != nil {
		return one, err
	}
	one.Sequence = q.name
	if !f.definer {
		one.Grantees = q.grantees
	}
	return one, nil
}

// A LayoutError says that existing ids have another layout than the [Wish].
type LayoutError struct{ Is, Asked firn.Layout }

func (e *LayoutError) Error() string {
	return fmt.Sprintf("its ids have the layout %s, not %s", e.Is, e.Asked)
}
