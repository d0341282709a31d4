package check

import (
	"errors"
	"fmt"

	"github.com/firn-id/firn/shard/topology"
)

// This file says what to do where the address of a server is right, and the database there knows nothing of the
// cluster.

// LostDo says what to do about a server whose address is right, and leads to a database that is not the server. For
// any other error it is empty.
func LostDo(err error) string {
	var stray *topology.StrayError
	var of *topology.ServerError
	const page = `docs/guides/shards-operating.md, "A server that is lost"`
	switch {
	case !errors.As(err, &stray) || stray.Original != "":
		return ""
	case stray.HadNone && errors.As(err, &of):
		return fmt.Sprintf(". If that address is right, and %s. If the database of %s is lost: %s", AddedElsewhere(of.Server), of.Server, page)
	}
	return ". If that address is right, what the server had is lost: " + page
}

// OtherAddress stands for an address in a command that a text names, where it is another address than the command that
// has failed was given.
const OtherAddress = "postgres://USER@HOST/THAT_DATABASE"

// AddedElsewhere says what to do about a server that has never had a shard, and that somebody added with the address of
// another database.
func AddedElsewhere(server string) string {
	return fmt.Sprintf("%s was added with the address of another database: firn shard remove-server %[1]s --server %[1]s="+OtherAddress+". Then: firn shard add-server %[1]s=postgres://USER@HOST/DATABASE", server)
}
