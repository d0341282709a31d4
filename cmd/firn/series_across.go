package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/whichstore"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
)

// acrossOf are the sequences over several stores that firn.yaml lists. Where the command line names a
// store, only what that has is meant.
func acrossOf(s *settings) (all []*drawing, only bool, err error) {
	if s.File == nil || saidBy(s.cmd.Flags().Lookup("store")) {
		return nil, false, nil
	}
	for i := range s.File.Series {
		one := &s.File.Series[i]
		if !one.Across() {
			continue
		}
		d := &drawing{&config.Series{Name: one.Name.Text, Kind: config.Sequence, Listed: true}, hinter{cmd: s.cmd}}
		if err := s.Counted(d.Series, one, nil); err != nil {
			return nil, false, err
		}
		all = append(all, d)
	}
	return all, len(all) > 0 && len(all) == len(s.File.Series) && s.StoreURL().Text == "", nil
}

// partLines are the parts of a sequence over several stores, but for that in the store of a URL, which is
// listed with that store. A store that does not answer hides no other.
func (d *drawing) partLines(cmd *cobra.Command, listed string) (lines []seriesLine, damaged []*store.FormatError) {
	for i, url := range d.URLs {
		if url == listed {
			continue
		}
		l, err := d.part(cmd, url)
		var bad *store.FormatError
		if errors.As(err, &bad) {
			damaged = append(damaged, bad)
		}
		if err != nil {
			l = &sequenceLine{Series: d.Name, Kind: config.Sequence, Error: fmt.Sprintf("store %d of %d: %s", i+1, len(d.URLs), phrase.Reason(whichstore.At(d.Series, url, err)))}
		}
		lines = append(lines, l)
	}
	return lines, damaged
}

// part is what one store has of the sequence.
func (d *drawing) part(cmd *cobra.Command, url string) (*sequenceLine, error) {
	st, err := open.Store(cmd.Context(), url, nil)
	if err != nil {
		return nil, err
	}
	info, err := sequence.Show(cmd.Context(), st, d.Name)
	if err = errors.Join(err, st.Close()); err != nil {
		return nil, err
	}
	return sequenceLineOf(info), nil
}
