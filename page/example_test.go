package page_test

import (
	"context"
	"fmt"
	"time"

	"github.com/firn-id/firn/page"
)

// A process takes ids from the page that another process, the agent, serves.
func Example() {
	ids, err := page.Open("/run/firn/shop", &page.OpenOptions{Wait: 5 * time.Second})
	if err != nil {
		fmt.Println("start the agent, then try again:", err)
		return
	}
	defer ids.Close()
	id, err := ids.Next(context.Background())
	if err != nil {
		fmt.Println("no id:", err)
		return
	}
	fmt.Println(id)
}
