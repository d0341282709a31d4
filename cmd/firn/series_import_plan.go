package main

import (
	"database/sql"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/sequence"
)

// An importPlan judges the rows of another system's table. It only looks.
type importPlan struct {
	next     bool
	above    int64 // steps
	settings *settings
	there    map[string]sequence.Info // the series of the store
}

// What an import does with a series.
type does string

const (
	doesBegin does = "begin"
	doesRaise does = "raise"
	doesKeep  does = "keep" // it goes on above the number already
)

// An imported is a series that a row is about.
type imported struct {
	row     int // from 1 on
	name    string
	given   int64 // the highest number that the other system has given or reserved
	step    int64
	first   int64 // the next number here
	does    does
	options sequence.Options // of a series that begins
	unnamed bool             // firn.yaml has series, and not this one
}

// judge returns what to do with each row, or an error with all that are faulty.
func (p *importPlan) judge(rows []counterRow) ([]imported, error) {
	all := make([]imported, 0, len(rows))
	seen := map[string]int{}
	var faults []string
	for i, r := range rows {
		m, err := p.row(i+1, r)
		if err == nil && seen[m.name] > 0 {
			err = fmt.Errorf("it is there twice, row %d too", seen[m.name])
		}
		if err != nil {
			where := fmt.Sprintf("row %d", i+1)
			if r[columnName].Valid {
				where += fmt.Sprintf(", %.80q", r[columnName].String)
			}
			faults = append(faults, where+": "+phrase.WithoutPackage(err.Error()))
			continue
		}
		seen[m.name] = i + 1
		all = append(all, m)
	}
	if faults == nil {
		return all, nil
	}
	const most = 20
	if n := len(faults) - most; n > 0 {
		faults = append(faults[:most], fmt.Sprintf("and %d more rows", n))
	}
	return nil, ui.Failed("%s", strings.Join(faults, "\n")).Hint("nothing was written; the SELECT can change a name, and leave a row out")
}

// row judges one row.
func (p *importPlan) row(number int, r counterRow) (imported, error) {
	m := imported{row: number, name: r[columnName].String}
	switch {
	case !r[columnName].Valid:
		return m, fmt.Errorf("the name is NULL")
	case !config.IsSeriesName(m.name):
		return m, fmt.Errorf("as the name of a series: %s", config.SeriesNameRule)
	}
	var err error
	if m.given, err = wholeNumber("number", r[columnNumber], 0, math.MaxInt64); err != nil {
		return m, err
	}
	if m.step, err = wholeNumber("step", r[columnStep], 1, block.MaxCache); err != nil {
		return m, err
	}
	if p.next {
		if m.given == 0 {
			return m, fmt.Errorf("the next number is 0: numbers are positive")
		}
		m.given--
	}
	if m.given >= math.MaxInt64-p.above*m.step {
		return m, fmt.Errorf("%s of %d above %d is beyond the largest number, %d", phrase.Plural(int(p.above), "step"), m.step, m.given, int64(math.MaxInt64))
	}
	m.first = m.given + p.above*m.step + 1
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
func (p *importPlan) configured(m *imported) error {
	d := &config.Series{Name: m.name, Kind: config.Sequence}
	var one *config.Written
	if f := p.settings.File; f != nil && len(f.Series) > 0 {
		for i := range f.Series {
			if f.Series[i].Name.Text == m.name {
				one = &f.Series[i]
			}
		}
		if m.unnamed = one == nil; !m.unnamed && one.Kind.Text != config.Sequence {
			return fmt.Errorf("%s:%d says that it is a %s", f.Path, one.Kind.At.Line, one.Kind.Text)
		}
		if one != nil && one.Across() {
			return fmt.Errorf("%s:%d says that it is spread over several stores", f.Path, one.Kind.At.Line)
		}
	}
	if err := p.settings.Counted(d, one, nil); err != nil {
		return err
	}
	o := &d.Options.Sequence
	switch {
	case o.First != 0 && int64(o.First) != m.first:
		return fmt.Errorf("%s has another first than %d, where it begins", p.settings.File.Path, m.first)
	case o.Max != 0 && int64(o.Max) < m.first:
		return fmt.Errorf("%d, where it begins, is above the max of %d in %s", m.first, int64(o.Max), p.settings.File.Path)
	case o.Increment > 1:
		return fmt.Errorf("%s has an increment of %d, and numbers are imported one by one", p.settings.File.Path, o.Increment)
	}
	o.First, o.Cache = firn.ID(m.first), int(m.step)
	if o.MaxUnused != 0 && o.MaxUnused < o.Cache {
		o.MaxUnused = 0 // it is of those who draw
	}
	m.options = *o
	return nil
}

// compare looks at the series of that name, if there is one.
func (p *importPlan) compare(m *imported) error {
	i, ok := p.there[m.name]
	m.does = doesBegin
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
	case i.Cache != m.step:
		return fmt.Errorf("the series is there, with cache %d, not %d: firn series set %s --cache %d", i.Cache, m.step, m.name, m.step)
	case used && m.given >= int64(i.First):
		return fmt.Errorf("the series has given numbers from %d to %d here, and the table is at %d: some may have been given twice; if not, firn series raise %s %d and leave the row out",
			int64(i.First), int64(i.Granted), m.given, m.name, max(m.first-1, int64(i.Granted)))
	case int64(i.Granted) >= m.first-1:
		m.does, m.first = doesKeep, int64(i.Granted)+1
	case int64(i.Max) < m.first:
		return fmt.Errorf("the series is there, with max %d, below %d", int64(i.Max), m.first)
	default:
		m.does = doesRaise
	}
	return nil
}
