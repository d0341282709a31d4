package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// A Key is a setting of a T: a key of firn.yaml and, for some, a flag of that name and the
// FIRN_ variable of the flag, all with one set of values.
type Key[T any] struct {
	section  string // of firn.yaml, where it has sections
	Name     string
	Kinds    []string // of series that have it
	Value    string   // what its value is called in the help of its flag; empty: it has no flag
	Usage    string   // of the flag
	Standard string   // what it is where nobody says
	path     bool     // a file, which firn.yaml names from its own directory
	list     bool     // firn.yaml may have a list, which is the same as with commas between
	InRecord bool     // the store's record of a pool has it: commands that lease have no flag
	Set      func(o *T, text string) error
}

// whole is how the setting is called in firn.yaml, with its section.
func (k *Key[T]) whole() string {
	if k.section == "" {
		return k.Name
	}
	return k.section + "." + k.Name
}

// Of reports whether series of that kind have the key.
func (k *Key[T]) Of(kind string) bool { return slices.Contains(k.Kinds, kind) }

// flagName is the name of its flag; "" if it has none.
func (k *Key[T]) flagName() string {
	if k.Value == "" {
		return ""
	}
	return k.Name
}

// KeyNamed returns the key of that name, or nil.
func KeyNamed[T any](keys []Key[T], name string) *Key[T] {
	i := slices.IndexFunc(keys, func(k Key[T]) bool { return k.whole() == name })
	if i < 0 {
		return nil
	}
	return &keys[i]
}

// KeyNames are the names of keys.
func KeyNames[T any](keys []Key[T]) []string {
	names := make([]string, len(keys))
	for i := range keys {
		names[i] = keys[i].Name
	}
	return names
}

// truth sets what is true or false.
func truth[T any](field func(*T) *bool) func(*T, string) error {
	return func(o *T, text string) error {
		if text != "true" && text != "false" {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		*field(o) = text == "true"
		return nil
	}
}

// upTo sets a number from 1 to most.
func upTo[T any](most int64, field func(*T) *int) func(*T, string) error {
	return func(o *T, text string) error {
		n, err := ParsePositive(text)
		if err == nil && n > most {
			return fmt.Errorf("%q: it is at most %d", text, most)
		}
		*field(o) = int(n)
		return err
	}
}

// positive sets a duration that is more than nothing.
func positive[T any](field func(*T) *time.Duration) func(*T, string) error {
	return func(o *T, text string) error {
		d, err := parseDuration(text)
		if err == nil && d == 0 {
			return fmt.Errorf("%q: it is more than 0", text)
		}
		*field(o) = d
		return err
	}
}

// text sets a text that is not empty.
func text[T any](field func(*T) *string) func(*T, string) error {
	return func(o *T, text string) error {
		if text == "" {
			return errors.New("it is empty: leave it out, or name a file")
		}
		*field(o) = text
		return nil
	}
}

// parseDuration reads a duration that is not negative.
func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err == nil && d >= 0:
		return d, nil
	case err == nil:
		return 0, fmt.Errorf("%q is negative", text)
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return 0, fmt.Errorf("%q has no unit: is it %ss?", text, text)
	}
	return 0, fmt.Errorf("%q is not a duration such as 500ms, 10s or 5m", text)
}

// parseNumber reads a number without sign.
func parseNumber(text string) (int64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number from 0 on", text)
	}
	return int64(n), nil
}

// ParsePositive reads a number from 1 on.
func ParsePositive(text string) (int64, error) {
	n, err := parseNumber(text)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is not a number from 1 on", text)
	}
	return n, nil
}
