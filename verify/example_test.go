package verify_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/verify"
)

func ExampleTally() {
	const text = "250041753275469782\n250041753275469783\n250041753275469782\n250041753275473879\n"
	tally := verify.NewTally(firn.Default())
	if err := verify.ReadLines(strings.NewReader(text), "ids.txt", tally); err != nil {
		log.Fatal(err)
	}
	tally.Add(250041753275469784, nil) // from anywhere

	report := tally.Report()
	fmt.Println(report.IDs, "ids,", report.Repeats, "repeats")
	for _, r := range report.Repeated {
		fmt.Println(r.ID, "again at", r.At)
	}
	for _, m := range report.Makers {
		fmt.Println("worker", m.Worker, "made", m.IDs)
	}
	// Output:
	// 5 ids, 1 repeats
	// 250041753275469782 again at ids.txt:3
	// worker 0 made 4
	// worker 1 made 1
}
