package ui

import (
	"strings"
	"testing"
)

func TestEmit(t *testing.T) {
	type row struct {
		Name string `json:"name"`
		Step int    `json:"step"`
	}
	rows := []row{{"photo", 1}, {"a&b", 100}}
	cells := func(r row) []any { return []any{r.Name, r.Step} }
	for asJSON, want := range map[bool]string{
		false: "NAME   STEP\nphoto  1\na&b    100\n",
		true:  "{\"name\":\"photo\",\"step\":1}\n{\"name\":\"a&b\",\"step\":100}\n",
	} {
		var b strings.Builder
		if err := Emit(&b, asJSON, []string{"NAME", "STEP"}, rows, cells); err != nil || b.String() != want {
			t.Errorf("JSON %v: %q, want %q (%v)", asJSON, b.String(), want, err)
		}
	}
}
