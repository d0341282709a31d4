// Package open opens what the settings of package config say: stores, leases of workers, and
// series of every kind, as the firn command and its server do.
//
// A program uses [Config]:
//
//	cfg, err := config.Load("")
//	app := open.Config(cfg, nil)
//	defer app.Close()
//	photos, err := app.Source(ctx, "photo")
//
// Errors are typed, and say which store, pool or series lacks what. Where a store can tell the
// cause of an error, such as that a missing pool was lost, the error says that.
package open
