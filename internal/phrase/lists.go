package phrase

import (
	"strings"
)

// And joins names for a sentence.
func And(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// List joins names with commas; "none" where there are none.
func List(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// Listed joins the cells of a column; "-" where there are none.
func Listed(all []string) string {
	if len(all) == 0 {
		return "-"
	}
	return strings.Join(all, ", ")
}
