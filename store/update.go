package store

import "context"

// An Updater is a [Store] that can lock a record while the caller decides what replaces it,
// as a SQL database does with a row. An Update costs more than a Get and a Put. It pays where
// many processes replace one record all the time: of those that Get and then Put, only one
// succeeds at a time, and some process may never succeed.
//
// Not every store is an Updater. A protocol must work without it.
type Updater interface {
	// Update waits until nobody else has locked the record of key, locks and reads
	// it, calls f with it, and writes what f returns under a new Version. Nobody
	// else writes the record in between. Update calls f once or not at all, and
	// returns the record as written.
	//
	// If f returns an error, nothing was written, and Update returns that error.
	// ErrConflict, and an error with the zero Version, mean that nothing was written
	// and nothing will be. Any other error is as one of Put. Some stores cannot lock
	// a record that was never written: then Update calls f, writes nothing, and
	// returns ErrConflict. f must be quick and must not call the store.
	Update(ctx context.Context, key string, f func(Record) ([]byte, error)) (Record, error)
}

// AsUpdater returns s as an Updater. If s is not one but wraps a Store, as its method Unwrap
// says, it returns that Store as an Updater. It returns nil if there is none.
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
