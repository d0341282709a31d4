// Package config reads firn.yaml and the FIRN_ variables: the settings that the firn command
// uses, for any Go program.
//
// [Load] finds and reads them, and opens nothing: no store, no key, no connection. Whatever
// is wrong with a file is reported at once, each fault with its line, its column, and the
// name that was probably meant. Package config/open opens what the settings say.
//
// A setting is what a flag or a variable says, else what the file says, else the default.
package config
