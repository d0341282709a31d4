package phrase

import (
	"fmt"
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

// most is how many names [Few] shows.
const most = 8

// Few joins names with commas. Of more than eight it shows eight, and says how many more there are.
func Few(names []string) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
}

// Listed joins the cells of a column; "-" where there are none.
func Listed(all []string) string {
	if len(all) == 0 {
		return "-"
	}
	return strings.Join(all, ", ")
}
