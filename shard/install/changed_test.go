package install

import (
	"os"
	"path/filepath"
)

// init takes the files of SQL that there are in the directory FIRN_TEST_SQL in the place of this
// package's own. internal/mutants takes hundreds of rules out of them, and builds these tests once.
func init() {
	dir, ok := os.LookupEnv("FIRN_TEST_SQL")
	if !ok {
		return
	}
	for name, sql := range map[string]*string{
		"generator.sql": &generatorSQL, "clock.sql": &clockSQL, "catalog.sql": &catalogSQL,
		"others.sql": &othersSQL, "owner.sql": &ownerSQL, "stream.sql": &streamSQL,
	} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			*sql = string(text)
		} else if !os.IsNotExist(err) {
			panic(err)
		}
	}
}
