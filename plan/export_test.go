package plan

import (
	"math"
	"math/rand/v2"

	"github.com/firn-id/firn"
)

const Behind = behind

// RandomNeed asks for anything between very little and too much.
func RandomNeed(r *rand.Rand) Need {
	scale := func(most float64) float64 { return math.Exp2(r.Float64() * math.Log2(most)) }
	n := Need{Rate: scale(1e11), Workers: int64(scale(1e7)), Years: scale(MaxYears)}
	if r.IntN(4) == 0 {
		n.WorkerRate = n.Rate * r.Float64()
	}
	if r.IntN(2) == 0 {
		n.Above = firn.ID(scale(math.MaxInt64))
	}
	return n
}
