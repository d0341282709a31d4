package sqids_test

import (
	"fmt"
	"log"

	"github.com/firn-id/firn/public/sqids"
)

// Links that were made with Sqids are read, and new ones look like them.
func Example() {
	form, err := sqids.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	text, err := form.Append(nil, 175928847299117063)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(text))
	fmt.Println(form.Parse(string(text)))
	// Output:
	// rYvbGzf0BK7
	// 175928847299117063 <nil>
}
