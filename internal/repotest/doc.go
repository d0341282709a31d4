// Package repotest has tests about the repository: who imports whom, what a user
// of the library compiles, how long files are, whether links lead somewhere. It
// has no other code.
package repotest
