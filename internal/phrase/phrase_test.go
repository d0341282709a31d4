package phrase_test

import (
	"fmt"
	"time"

	"github.com/firn-id/firn/internal/phrase"
)

func Example() {
	fmt.Println(phrase.Count(1234567), phrase.Plural(2, "pool"), phrase.Counted(1, "line is", "lines are"))
	fmt.Println(phrase.Bytes(79_000_000_000), phrase.Rate(3.25), phrase.Duration(5*time.Minute))
	fmt.Println(phrase.And([]string{"a", "b", "c"}), phrase.ShellWord("orders 2"))
	// Output:
	// 1,234,567 2 pools 1 line is
	// 79 GB 3.25 5m
	// a, b and c 'orders 2'
}
