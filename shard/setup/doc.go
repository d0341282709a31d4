// Package setup makes logical shards on servers: those of a new cluster, a server
// more, those that were there before firn. Everything can be broken off at any moment
// and run again, and changes nothing where nothing is left to do.
//
// [Open] looks at all servers, and locks them. What is to be done is a plan, made of
// what was seen and without asking again; Run does it.
package setup
