// Package daemon is the server of firn serve, for a Go program that runs it inside itself:
//
//	cfg, err := config.Load("")
//	err = daemon.Run(ctx, cfg, nil) // until ctx ends
//
// [Run] listens, opens what the settings name, and gives ids, numbers and texts over the Redis
// protocol and HTTP. Stores that are away are waited for, a reload changes what is served
// without dropping a connection, and at the end what was asked is answered and workers are
// given back.
//
// What a server draws from is a supply (supply.go): opened again and again until its store
// answers. Supplies share stores (stores.go), so that what one of them finds out about a store
// stops the others. A plan (plan.go) is what is to be served, with nothing opened yet.
package daemon
