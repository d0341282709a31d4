package takeover

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
)

// A Plan judges the rows of another system's table. It only looks.
type Plan struct {
	Next       bool  // the number of a row is the next one to be given, not the last that was
	LeaveSteps int64 // how many steps to leave between that number and the first one here
	Settings   *config.Config

	there map[string]sequence.Info // the series of the store
}

// MaxLeaveSteps keeps a mistyped LeaveSteps from using up a series.
const MaxLeaveSteps = 1_000_000

// A Deed is what an import does with a series.
type Deed string

// The deeds of an import.
const (
	Begin Deed = "begin"
	Raise Deed = "raise"
	Keep  Deed = "keep" // the series continues above the number already
)

// An Import is a series that a row is about.
type Import struct {
	Row     int // from 1 on
	Name    string
	Given   int64 // the highest number that the other system has given or reserved
	Step    int64
	First   int64 // the next number here
	Does    Deed
	Unnamed bool // firn.yaml has series, and not this one

	options sequence.Options // of a series that begins
}

// Judge returns what to do with each row, or an error with all that are faulty. Without a store
// (nil) no series is there yet.
func (p *Plan) Judge(ctx context.Context, st store.Store, rows []Row) ([]Import, error) {
	p.there = map[string]sequence.Info{}
	if st != nil {
		infos, err := sequence.List(ctx, st)
		if err != nil {
			return nil, err
		}
		for _, i := range infos {
			p.there[i.Name] = i
		}
	}
	all, err := p.judge(rows)
	if err == nil && st != nil {
		err = mayKeep(ctx, st, all)
	}
	return all, err
}

// mayKeep returns a [*sequence.LossyError] where the store is lossy, and that is not accepted.
func mayKeep(ctx context.Context, st store.Store, all []Import) error {
	p, err := st.Durability(ctx)
	if err != nil || p.Durable {
		return err
	}
	for _, m := range all {
		if m.Does == Begin && !m.options.MayRepeat {
			return &sequence.LossyError{Name: m.Name, Why: p.Why}
		}
	}
	return nil
}

// judge returns what to do with each row.
func (p *Plan) judge(rows []Row) ([]Import, error) {
	all := make([]Import, 0, len(rows))
	seen := map[string]int{}
	var faults []string
	for i, r := range rows {
		m, err := p.row(i+1, r)
		if err == nil && seen[m.Name] > 0 {
			err = fmt.Errorf("it is there twice, row %d too", seen[m.Name])
		}
		if err != nil {
			where := fmt.Sprintf("row %d", i+1)
			if r[columnName].Valid {
				where += fmt.Sprintf(", %.80q", r[columnName].String)
			}
			faults = append(faults, where+": "+phrase.WithoutPackage(err.Error()))
			continue
		}
		seen[m.Name] = i + 1
		all = append(all, m)
	}
	if faults == nil {
		return all, nil
	}
	const most = 20
	if n := len(faults) - most; n > 0 {
		faults = append(faults[:most], fmt.Sprintf("and %d more rows", n))
	}
	return nil, failed("%s", strings.Join(faults, "\n")).hint("nothing was written; the SELECT can change a name, and leave a row out")
}

// row judges one row.
func (p *Plan) row(number int, r Row) (Import, error) {
	m := Import{Row: number, Name: r[columnName].String}
	switch {
	case !r[columnName].Valid:
		return m, fmt.Errorf("the name is NULL")
	case !config.IsSeriesName(m.Name):
		return m, fmt.Errorf("as the name of a series: %s", config.SeriesNameRule)
	}
	var err error
	if m.Given, err = wholeNumber("number", r[columnNumber], 0, math.MaxInt64); err != nil {
		return m, err
	}
	if m.Step, err = wholeNumber("step", r[columnStep], 1, block.MaxCache); err != nil {
		return m, err
	}
	if p.Next {
		if m.Given == 0 {
			return m, fmt.Errorf("the next number is 0: numbers are positive")
		}
		m.Given--
	}
	if m.Given >= math.MaxInt64-p.LeaveSteps*m.Step {
		return m, fmt.Errorf("%s of %d above %d is beyond the largest number, %d", phrase.Plural(int(p.LeaveSteps), "step"), m.Step, m.Given, int64(math.MaxInt64))
	}
	m.First = m.Given + p.LeaveSteps*m.Step + 1
	if err := p.configured(&m); err != nil {
		return m, err
	}
	return m, p.compare(&m)
}

// wholeNumber reads a number of a row.
func wholeNumber(what string, text sql.NullString, least, most int64) (int64, error) {
	n, err := strconv.ParseInt(text.String, 10, 64)
	switch {
	case !text.Valid:
		return 0, fmt.Errorf("the %s is NULL", what)
	case err != nil:
		return 0, fmt.Errorf("the %s is no whole number up to %d: %q", what, most, text.String)
	case n < least || n > most:
		return 0, fmt.Errorf("the %s is %d to %d, not %d", what, least, most, n)
	}
	return n, nil
}

// configured fills in the options of a series that begins: those of firn.yaml, where
// it has the series.
func (p *Plan) configured(m *Import) error {
	d := &config.Series{Name: m.Name, Kind: config.Sequence}
	var one *config.Written
	if f := p.Settings.File; f != nil && len(f.Series) > 0 {
		for i := range f.Series {
			if f.Series[i].Name.Text == m.Name {
				one = &f.Series[i]
			}
		}
		if m.Unnamed = one == nil; !m.Unnamed && one.Kind.Text != config.Sequence {
			return fmt.Errorf("%s:%d says that it is a %s", f.Path, one.Kind.At.Line, one.Kind.Text)
		}
		if one != nil && one.Across() {
			return fmt.Errorf("%s:%d says that it is spread over several stores", f.Path, one.Kind.At.Line)
		}
	}
	if err := p.Settings.Counted(d, one, nil); err != nil {
		return err
	}
	o := &d.Options.Sequence
	switch {
	case o.First != 0 && int64(o.First) != m.First:
		return fmt.Errorf("%s has another first than %d, where it begins", p.Settings.File.Path, m.First)
	case o.Max != 0 && int64(o.Max) < m.First:
		return fmt.Errorf("%d, where it begins, is above the max of %d in %s", m.First, int64(o.Max), p.Settings.File.Path)
	case o.Increment > 1:
		return fmt.Errorf("%s has an increment of %d, and numbers are Import one by one", p.Settings.File.Path, o.Increment)
	}
	o.First, o.Cache = firn.ID(m.First), int(m.Step)
	if o.MaxUnused != 0 && o.MaxUnused < o.Cache {
		o.MaxUnused = 0 // it is of those who draw
	}
	m.options = *o
	return nil
}

// compare looks at the series of that name, if there is one.
func (p *Plan) compare(m *Import) error {
	i, ok := p.there[m.Name]
	m.Does = Begin
	if !ok {
		return nil
	}
	if i.Err != nil {
		return i.Err
	}
	limit := m.options.Max
	if limit == 0 {
		limit = math.MaxInt64
	}
	switch used := !i.At.IsZero(); {
	case i.Stores > 1:
		return fmt.Errorf("the series is there, and is spread over %d stores", i.Stores)
	case i.Increment != 1:
		return fmt.Errorf("the series is there, with an increment of %d", i.Increment)
	case i.Strict != m.options.Strict:
		return fmt.Errorf("the series is there, and its order is not the same")
	case i.Max != limit:
		return fmt.Errorf("the series is there, with max %d", int64(i.Max))
	case i.Cache != m.Step:
		return fmt.Errorf("the series is there, with cache %d, not %d: firn series set %s --cache %d", i.Cache, m.Step, m.Name, m.Step)
	case used && m.Given >= int64(i.First):
		return fmt.Errorf("the series has given numbers from %d to %d here, and the table is at %d: some may have been given twice; if not, firn series raise %s %d and leave the row out",
			int64(i.First), int64(i.Granted), m.Given, m.Name, max(m.First-1, int64(i.Granted)))
	case int64(i.Granted) >= m.First-1:
		m.Does, m.First = Keep, int64(i.Granted)+1
	case int64(i.Max) < m.First:
		return fmt.Errorf("the series is there, with max %d, below %d", int64(i.Max), m.First)
	default:
		m.Does = Raise
	}
	return nil
}
