package install_test

import (
	"bytes"
	"fmt"
	"log"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/shard/install"
)

// The SQL of one shard, for a migration of your own. It is one transaction.
func ExampleWriteSQL() {
	var sql bytes.Buffer
	err := install.WriteSQL(&sql, firn.MustLayout("instagram"), install.Definition{Number: 5, Schema: "insta5", Roles: []string{"app"}})
	if err != nil {
		log.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(sql.String()), "\n")
	fmt.Println(lines[0], lines[len(lines)-1])
	// Output: BEGIN; COMMIT;
}
