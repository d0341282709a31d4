package migrate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/firn-id/firn/shard/topology"
)

// A Plan says which files each shard has yet to get.
type Plan struct {
	Work []Work // by shard; none of a shard that has all
	Left []Left // shards that are not served now, by shard
	Full int    // how many shards have all files already

	cluster string
}

// A Work is the files that one shard gets.
type Work struct {
	Shard  int64
	Schema string
	Server string
	Files  []File // at least one

	first bool // the shard has no table of records yet
}

// A Left is a shard that gets no file now.
type Left struct {
	Shard int64
	Why   string
}

// A ConflictError says that a file does not fit with the files that shards have.
type ConflictError struct {
	File   string
	Why    Conflict
	Shards []int64 // at least one
}

// A Conflict says why a file does not fit.
type Conflict int

const (
	// Changed is a file that is not what was applied under its number.
	Changed Conflict = iota
	// Missing is a file that was applied and is not there.
	Missing
	// Late is a new file whose number is below that of an applied file.
	Late
)

func (e *ConflictError) Error() string {
	on := Ranges(e.Shards)
	switch e.Why {
	case Changed:
		return fmt.Sprintf("%s was changed after it was applied to %s", e.File, on)
	case Missing:
		return fmt.Sprintf("%s was applied to %s, and is not there", e.File, on)
	default:
		return fmt.Sprintf("%s comes late: a file with a higher number was applied to %s", e.File, on)
	}
}

// NewPlan compares files with what shards have. Asked selects shards; nil means all. The error joins a
// [*ConflictError] for each file that does not fit. With late, a file may come after files with higher
// numbers.
func NewPlan(s *State, files []File, asked func(shard int64) bool, late bool) (*Plan, error) {
	p := &Plan{cluster: s.Map.Cluster}
	var conflicts []*ConflictError
	for _, r := range s.Map.Routes {
		todo, wrong := compare(files, s.Records[r.Shard], late)
		for _, c := range wrong {
			// The shards of a cluster do not have different files under one number, also
			// if only some of them are asked for; their order is a matter of each.
			if isAsked := asked == nil || asked(r.Shard); isAsked || c.Why != Late {
				conflicts = addConflict(conflicts, c, r.Shard)
			}
		}
		switch {
		case asked != nil && !asked(r.Shard):
		case r.State != topology.StateOpen || r.Server == "":
			p.Left = append(p.Left, Left{r.Shard, r.Why})
		case len(todo) > 0:
			p.Work = append(p.Work, Work{r.Shard, r.Schema, r.Server, todo, s.missing[r.Shard]})
		default:
			p.Full++
		}
	}
	if len(conflicts) == 0 {
		return p, nil
	}
	all := make([]error, len(conflicts))
	for i, c := range conflicts {
		all[i] = c
	}
	return nil, errors.Join(all...)
}

// compare says what a shard has yet to get, and what does not fit.
func compare(files []File, records []Record, late bool) (todo []File, wrong []ConflictError) {
	had := make(map[int64]Record, len(records))
	highest := int64(-1)
	for _, r := range records {
		had[r.Number] = r
		if !r.Applied.IsZero() {
			highest = max(highest, r.Number)
		}
		if !slices.ContainsFunc(files, func(f File) bool { return f.Number == r.Number }) {
			wrong = append(wrong, ConflictError{File: r.Name, Why: Missing})
		}
	}
	for _, f := range files {
		r, known := had[f.Number]
		switch {
		case !known && f.Number < highest && !late:
			wrong = append(wrong, ConflictError{File: f.Name, Why: Late})
		case known && !r.Applied.IsZero() && r.Sum == f.Sum: // it has it
		case known && !r.Applied.IsZero(), known && !f.Outside:
			wrong = append(wrong, ConflictError{File: f.Name, Why: Changed})
		default:
			// One that was broken off may have been mended since.
			todo = append(todo, f)
		}
	}
	return todo, wrong
}

func addConflict(all []*ConflictError, c ConflictError, n int64) []*ConflictError {
	for _, old := range all {
		if old.File == c.File && old.Why == c.Why {
			old.Shards = append(old.Shards, n)
			return all
		}
	}
	c.Shards = []int64{n}
	return append(all, &c)
}

// Divide splits a plan into the work on one shard and the work on the others. Where the shard has no work, it
// takes the first of the plan.
func (p *Plan) Divide(canary int64) (one, others *Plan) {
	i := max(0, slices.IndexFunc(p.Work, func(w Work) bool { return w.Shard == canary }))
	one = &Plan{Work: p.Work[i:min(i+1, len(p.Work))], cluster: p.cluster}
	others = &Plan{Work: slices.Concat(p.Work[:i], p.Work[min(i+1, len(p.Work)):]), Left: p.Left, cluster: p.cluster}
	return one, others
}

// Ranges names shards: "shard 5", "shards 0-9, 12".
func Ranges(numbers []int64) string {
	if len(numbers) == 1 {
		return fmt.Sprintf("shard %d", numbers[0])
	}
	var parts []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		part := fmt.Sprint(numbers[i])
		if j > i {
			part += fmt.Sprintf("-%d", numbers[j])
		}
		parts = append(parts, part)
		i = j + 1
	}
	return "shards " + strings.Join(parts, ", ")
}

// Shards returns the shards that are to get a file. It is never nil.
func (p *Plan) Shards(f File) []int64 {
	shards := []int64{}
	for _, todo := range p.Work {
		if slices.ContainsFunc(todo.Files, func(g File) bool { return g.Number == f.Number }) {
			shards = append(shards, todo.Shard)
		}
	}
	return shards
}
