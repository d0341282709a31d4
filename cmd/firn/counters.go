package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/serial"
	"github.com/firn-id/firn/store"
)

// This file is what "store restored" does about series that count. How far a
// counter had gone that a store has forgotten no clock can tell, only a person.

// addNumbers adds --numbers.
func addNumbers(cmd *cobra.Command) {
	cmd.Flags().Int64("numbers", 0, "by how much to raise the counters of segments, tickets and serials: more than any of them can have lost")
}

// numbersOf is the --numbers of a command, 0 if it is not given.
func numbersOf(cmd *cobra.Command) (int64, error) {
	f := cmd.Flags().Lookup("numbers")
	if !f.Changed {
		return 0, nil
	}
	n, err := cmd.Flags().GetInt64("numbers")
	switch {
	case err == nil && n < 1:
		err = bad("--numbers %d: it is at least 1", n)
	case err == nil && n >= serial.MaxRaise:
		err = bad("--numbers %d: it is below %d, which no counter could hold", n, int64(serial.MaxRaise))
	}
	return n, err
}

// A restoredCounter is a series that counts, as --json prints it.
type restoredCounter struct {
	Series  string `json:"series"`
	Kind    string `json:"kind"`
	By      int64  `json:"raised_by,string"`
	Through string `json:"through,omitempty"` // of a serial: the last period that was raised
	Granted int64  `json:"granted,string,omitempty"`
}

// raiseCounters raises every counter of a store by so many numbers.
func raiseCounters(ctx context.Context, s store.Store, numbers int64) ([]restoredCounter, error) {
	segments, err := segment.List(ctx, s)
	if err != nil {
		return nil, err
	}
	serials, err := serial.List(ctx, s)
	if err != nil {
		return nil, err
	}
	if n := len(segments) + len(serials); n > 0 && numbers == 0 {
		return nil, bad("the store has %d series that count, and nobody but you can know how far: --numbers is missing", n).
			hint("--numbers N, more than any of them can have given out since what is in the store now")
	}
	var all []restoredCounter
	// Where there is nothing to raise, too: what is not there may be forgotten, and
	// does not begin again by itself.
	dense, err := segment.Restored(ctx, s, max(numbers, 1))
	if err != nil {
		return nil, again(err)
	}
	for _, i := range dense {
		all = append(all, restoredCounter{Series: i.Name, Kind: kindSegment, By: numbers, Granted: int64(i.Granted)})
	}
	raised, err := serial.Restored(ctx, s, numbers)
	if err != nil {
		return nil, again(err)
	}
	for _, r := range raised {
		all = append(all, restoredCounter{Series: r.Series, Kind: kindSerial, By: r.By, Through: r.Through})
	}
	return all, nil
}

func again(err error) error {
	return classify(err).hint("the same again, before anything is started")
}

func printCounters(out io.Writer, all []restoredCounter, asJSON bool) error {
	enc := json.NewEncoder(out)
	var errs []error
	for _, c := range all {
		switch {
		case asJSON:
			errs = append(errs, enc.Encode(c))
		case c.Kind == kindSegment:
			_, err := fmt.Fprintf(out, "series %s: %d numbers are left out; it goes on above %d\n", c.Series, c.By, c.Granted)
			errs = append(errs, err)
		case c.Through != "":
			_, err := fmt.Fprintf(out, "serial %s: %d numbers are left out in each period up to %s\n", c.Series, c.By, c.Through)
			errs = append(errs, err)
		default:
			_, err := fmt.Fprintf(out, "serial %s: %d numbers are left out\n", c.Series, c.By)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
