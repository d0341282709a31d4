package config

import (
	"os"

	"github.com/firn-id/firn/internal/variable"
)

// Load reads the settings that the firn command would use: the file at path, and the FIRN_
// variables. Where path is empty it is the file of FIRN_CONFIG, else the first that is there of
// ./firn.yaml, $XDG_CONFIG_HOME/firn/firn.yaml (~/.config), and /etc/firn/firn.yaml; else no
// file, which is no error.
//
// Load opens nothing besides the file. A file with faults is a [*FaultsError], which has all
// of them. A variable that is set and empty is an error, because it is nearly always one of a
// script that nobody has filled in.
func Load(path string) (*Config, error) {
	said, err := fromEnvironment(os.LookupEnv)
	if err != nil {
		return nil, err
	}
	if path != "" {
		said["config"] = Value{path, "config.Load"}
	}
	at, err := Locate(said["config"])
	if err != nil {
		return nil, err
	}
	file, err := at.Read()
	if err != nil {
		return nil, err
	}
	return New(file, said), nil
}

// fromEnvironment returns what variables say of settings.
func fromEnvironment(lookup func(string) (string, bool)) (map[string]Value, error) {
	said := map[string]Value{}
	for _, v := range variable.All {
		text, ok := lookup(v.Name())
		switch {
		case !ok || !v.IsSetting():
		case text == "":
			return nil, faulty("the variable %s is set and empty", v.Name()).advise("unset %s, or give it a value", v.Name())
		default:
			said[v.Key] = Value{text, v.Name()}
		}
	}
	if store, ok := said["store"]; ok {
		if err := CheckStore(store.Text); err != nil {
			return nil, &ValueError{store.From, err}
		}
	}
	return said, nil
}
