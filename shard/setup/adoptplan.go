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
	Plan     *Plan
	Function string
	Servers  []AdoptedServer
}

// An AdoptedServer says what is adopted on one server.
type AdoptedServer struct {
	Server  string
	Schemas []AdoptedSchema // by shard
	Others  []OtherFunction // that make ids too, and are left as they are
}

// An OtherFunction makes ids by a formula as well, in a schema of the pattern, and has
// another name than those that are taken over.
type OtherFunction struct {
	Shard        int64
	Schema, Name string
}

// An AdoptedSchema becomes a shard.
type AdoptedSchema struct {
	Shard    int64
	Schema   string
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

// Adopt plans that schemas become shards which have a function that makes ids, by a
// formula that is read out of its text. Nothing is planned unless all can be taken
// over: the layout is everywhere the one that is wished, and each shard there once.
func (s *Servers) Adopt(ctx context.Context, w Wish, name string) (*Adoption, error) {
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
	if m != nil {
		w.Layout, w.Schemas = m.Layout, m.Schemas
	} else if w.Keys == "" {
		return nil, ErrNoKeys
	}
	a := &Adoption{Function: name, Servers: make([]AdoptedServer, len(s.sites))}
	if err := atonce.Each(s.sites, func(i int, t *site) (err error) {
		a.Servers[i], err = t.find(ctx, w, name)
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

// Steps returns how many shards Run changes.
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
		return fmt.Sprintf("shard: there is a shard %d, so there are at least %d shards, and not %d: the first one is shard 0", e.Highest, e.Highest+1, e.Count)
	}
	why := "the shard of a key (" + e.Keys + ") depends on it"
	if e.Keys == topology.None {
		why = "no shard above it can come later"
	}
	return fmt.Sprintf("shard: %d schemas were found, up to shard %d; how many shards there are has to be said, and never changes: %s", e.Found, e.Highest, why)
}

// numbers checks that each shard is there once, and that they are as many as wished.
func (a *Adoption) numbers(sites []*site, w *Wish) error {
	at := map[int64]string{}
	highest := int64(-1)
	claim := func(n int64, where string) error {
		if other, twice := at[n]; twice {
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
		none := &NoFunctionError{Schemas: w.Schemas, Function: a.Function}
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

// A NoFunctionError says that no schema has the function that makes ids.
type NoFunctionError struct {
	Schemas, Function string
	Others            []OtherFunction // that make ids there
}

func (e *NoFunctionError) Error() string {
	return fmt.Sprintf("shard: there is no schema like %s with a function %s()", e.Schemas, e.Function)
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
}

// find finds what can be taken over on a server. The error says of some schemas why
// they cannot.
func (t *site) find(ctx context.Context, w Wish, name string) (AdoptedServer, error) {
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
	known := map[string]bool{}
	if t.view != nil {
		for _, row := range t.view.Shards {
			known[row.Schema] = true
		}
	}
	var faults []error
	for _, f := range all {
		n, ok := numberIn(w.Schemas, f.schema)
		if !ok {
			continue
		}
		if f.name != name {
			if _, err := f.function.formula(); err == nil {
				result.Others = append(result.Others, OtherFunction{n, f.schema, f.name})
			}
			continue
		}
		if known[f.schema] {
			continue
		}
		one, err := k.schema(f, n, w.Layout)
		if err != nil {
			faults = append(faults, t.fault("%s.%s: %w", f.schema, name, err))
		}
		result.Schemas = append(result.Schemas, one)
	}
	if len(faults) == 0 {
		err = k.shared(result.Schemas)
	}
	if len(faults) > maxFaults {
		faults = append(faults[:maxFaults:maxFaults], t.fault("%d more", len(faults)-maxFaults))
	}
	if err = errors.Join(append(faults, err)...); err != nil {
		return result, err
	}
	slices.SortFunc(result.Schemas, func(a, b AdoptedSchema) int { return int(a.Shard - b.Shard) })
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
	one := AdoptedSchema{Shard: n, Schema: f.schema, Grantees: f.grantees, oid: f.oid}
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
