package store

import "context"

// An Updater is a Store that can hold a record while the caller decides what
// replaces it, as an SQL database does with a row. That costs more than a Get and
// a Put, and pays where many replace one record all the time: of those that read
// it first and compare after, only one succeeds at a time, and anyone may be the
// one that never does.
//
// Adapters may have it. A protocol must work without.
type Updater interface {
	// Update reads the record of key, calls f with it, and writes what f returns
	// under a new Version; nobody else writes the record in between. It calls f
	// once or not at all, and waits for those that hold the record already. The
	// record returned is the one written.
	//
	// When f returns an error nothing was written, and Update returns that error.
	// ErrConflict, and an error with the zero Version, mean that nothing was and
	// nothing will be written; any other is as one of Put. A record that was never
	// written may be one that cannot be held: f is called, and what it returns is
	// answered with ErrConflict. f must be quick and must not call the store.
	Update(ctx context.Context, key string, f func(Record) ([]byte, error)) (Record, error)
}

// AsUpdater returns s as an Updater, or the Store that it stands for, as its
// method Unwrap says; nil where neither is one.
func AsUpdater(s Store) Updater {
	for s != nil {
		if u, ok := s.(Updater); ok {
			return u
		}
		w, ok := s.(interface{ Unwrap() Store })
		if !ok {
			return nil
		}
		s = w.Unwrap()
	}
	return nil
}
