package hashids_test

import (
	"fmt"
	"log"

	"github.com/firn-id/firn/public/hashids"
)

// Links that were made with Hashids are read, and new ones look like them.
func Example() {
	form, err := hashids.New(&hashids.Options{Salt: "this is my salt", MinLength: 8})
	if err != nil {
		log.Fatal(err)
	}
	text, err := form.Append(nil, 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(text))
	fmt.Println(form.Parse(string(text)))
	// Output:
	// gB0NV05e
	// 1 <nil>
}
