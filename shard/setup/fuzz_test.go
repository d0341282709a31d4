package setup

import (
	"testing"
	"time"
)

// A layout that is made of a function's formula makes the ids that the function makes.
func FuzzFormulaLayout(f *testing.F) {
	f.Add(int64(1000), int64(1314220021721), int64(1024), int64(23), int64(10), int64(0))
	f.Add(int64(1), int64(-5), int64(4096), int64(22), int64(12), int64(0))
	f.Add(int64(1_000_000), int64(1<<62), int64(2), int64(20), int64(1), int64(0))
	f.Add(int64(1000), int64(0), int64(1024), int64(23), int64(0), int64(13))
	f.Fuzz(func(t *testing.T, rate, epoch, modulus, timeShift, shardShift, seqShift int64) {
		if rate < 1 || timeShift < 0 || shardShift < 0 || seqShift < 0 || max(timeShift, shardShift, seqShift) > 62 || int64(time.Second)%rate != 0 {
			return // no formula says so
		}
		l, err := formula{rate: rate, epoch: epoch, modulus: modulus, timeShift: timeShift, shardShift: shardShift, seqShift: seqShift}.layout()
		if err != nil {
			return
		}
		for name, shift := range map[string]int64{"time": timeShift, "shard": shardShift, "seq": seqShift} {
			if field, ok := l.Field(name); !ok || int64(field.Shift) != shift || name == "seq" && int64(1)<<field.Width != modulus {
				t.Fatalf("%s: %s is %+v, not at %d", l, name, field, shift)
			}
		}
		if unit := l.Time(1).Sub(l.Epoch()); unit*time.Duration(rate) != time.Second {
			t.Fatalf("%s: a tick of %s, and %d in a second", l, unit, rate)
		}
		if at := l.Epoch(); at.Unix()*rate+int64(at.Nanosecond())*rate/int64(time.Second) != epoch {
			t.Fatalf("%s: epoch %s is not %d of %d in a second", l, at, epoch, rate)
		}
	})
}
