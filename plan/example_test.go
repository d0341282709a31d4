package plan_test

import (
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/firn-id/firn/plan"
)

func ExampleNeed_Proposals() {
	now := time.Date(2026, time.November, 21, 0, 0, 0, 0, time.UTC)
	need := plan.Need{Rate: 1000, Workers: 2000, WorkerRate: 500, Years: 50}
	proposals, err := need.Proposals(now)
	if err != nil {
		log.Fatal(err)
	}
	best := proposals[0]
	fmt.Printf("%s ends in %d, with room of %.1f\n", best.Layout, best.Layout.End().Year(), best.Room)

	need.Rate, need.Years = 1e12, 200
	_, err = need.Proposals(now)
	var none *plan.NoneError
	if errors.As(err, &none) {
		for _, r := range none.Relaxed {
			fmt.Printf("%s: at most %.0f\n", r.Requirement, r.Most)
		}
	}
	// Output:
	// time:45@1ms,worker:15,seq:3;epoch=2026-01-01T00:00:00Z ends in 3140, with room of 16.0
	// rate: at most 1310720000
}
