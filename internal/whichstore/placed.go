package whichstore

import "github.com/firn-id/firn/config"

// A PlacedError is the error of one of the stores of a series that has several.
type PlacedError struct {
	URL string
	err error
}

func (e *PlacedError) Error() string { return e.err.Error() }

func (e *PlacedError) Unwrap() error { return e.err }

// At adds to an error of which store it is, where the series has several.
func At(d *config.Series, url string, err error) error {
	if err == nil || len(d.URLs) == 1 {
		return err
	}
	return &PlacedError{url, err}
}
