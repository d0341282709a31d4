package picture_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/picture"
)

// TestPictures compares with testdata/pictures.txt. After a change of the
// drawing, write it with FIRN_PICTURES=write and look at it.
func TestPictures(t *testing.T) {
	const file = "testdata/pictures.txt"
	var b strings.Builder
	for name, l := range firn.Presets() {
		fmt.Fprintf(&b, "%s\n\n%s\n\n", name, picture.Of(l))
	}
	for _, text := range []string{
		"time:41@1ms;epoch=2020-01-01T00:00:00Z",
		"time:63@1us;epoch=2020-01-01T00:00:00Z",
		"time:2@1h,worker:62;epoch=2020-01-01T00:00:00Z",
		"seq:1,time:30@1s,shard:1;epoch=2020-01-01T00:00:00Z",
		"worker:1,seq:1,shard:1,time:41@1ms,a:1,b:1;epoch=2020-01-01T00:00:00Z",
		"a:1,b:1,c:1,time:30@1h,d:1,e:1,f:1,seq:1;epoch=2020-01-01T00:00:00Z",
		"time:44@1500us,datacenter_group:1,hypervisor_group:1,process_identity:2,worker:4,shard:5,partition_number:3,seq:3;epoch=2020-01-01T00:00:00Z",
	} {
		fmt.Fprintf(&b, "%s\n\n%s\n\n", text, picture.Of(firn.MustLayout(text)))
	}
	if os.Getenv("FIRN_PICTURES") == "write" {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("the pictures are not those of %s:\n%s", file, b.String())
	}
}

// checkPicture: a box without ragged edges, not too wide, with all there is to
// say of each field in order.
func checkPicture(t *testing.T, l firn.Layout) {
	t.Helper()
	drawn := picture.Of(l)
	lines := strings.Split(drawn, "\n")
	edges := 0
	for _, line := range lines {
		width := utf8.RuneCountInString(line)
		if width > 78 || strings.TrimRight(line, " ") != line {
			t.Fatalf("%s: a line of %d columns:\n%s", l, width, drawn)
		}
		if strings.HasSuffix(line, "│") || strings.HasSuffix(line, "┐") || strings.HasSuffix(line, "┘") || strings.HasSuffix(line, "┤") {
			if edges == 0 {
				edges = width
			}
			if width != edges {
				t.Fatalf("%s: a ragged edge:\n%s", l, drawn)
			}
		}
	}
	// Words in the order in which they are read, a line after the other in both
	// ways of drawing.
	words := strings.Fields(strings.NewReplacer("│", " ", "..", " ").Replace(drawn))
	expect := func(word string) {
		for i, w := range words {
			if w == word {
				words = words[i+1:]
				return
			}
		}
		t.Fatalf("%s: %q is not there, or not in its place:\n%s", l, word, drawn)
	}
	all := words
	if len(lines) == 5 { // side by side: numbers, names, widths
		for f := range l.Fields() {
			expect(strconv.Itoa(f.Shift + f.Width - 1))
			if f.Width > 1 {
				expect(strconv.Itoa(f.Shift))
			}
		}
		for f := range l.Fields() {
			expect(f.Name)
		}
	}
	for f := range l.Fields() {
		if len(lines) != 5 {
			expect(strconv.Itoa(f.Shift + f.Width - 1))
			if f.Width > 1 {
				expect(strconv.Itoa(f.Shift))
			}
			expect(f.Name)
		}
		expect(strconv.Itoa(f.Width))
		if f.Name == "time" {
			expect("of")
			_, unit, _ := strings.Cut(l.String(), "@")
			expect(unit[:strings.IndexAny(unit, ",;")])
		}
	}
	if l.Bits() < 64 {
		words = all
		expect("63")
		expect("0")
	}
}

func TestPictureOfAny(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	ways := map[bool]int{}
	for range 5000 {
		l := randomLayout(r)
		checkPicture(t, l)
		ways[strings.Count(picture.Of(l), "\n") == 4]++
	}
	if ways[true] < 100 || ways[false] < 100 {
		t.Errorf("side by side and one below the other: %v", ways)
	}
}

// randomLayout is a layout of up to seven fields in any order.
func randomLayout(r *rand.Rand) firn.Layout {
	units := []string{"1ms", "10ms", "1s", "1us", "250us", "1h"}
	for {
		fields := []string{fmt.Sprintf("time:%d@%s", 1+r.IntN(50), units[r.IntN(len(units))])}
		for _, name := range []string{"worker", "seq", "shard", "a", "region", "process_identity"} {
			if r.IntN(2) == 0 {
				fields = append(fields, fmt.Sprintf("%s:%d", name, 1+r.IntN(13)))
			}
		}
		r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		if l, err := firn.ParseLayout(strings.Join(fields, ",") + ";epoch=2020-01-01T00:00:00Z"); err == nil {
			return l
		}
	}
}
