package phrase

import (
	"fmt"
	"strconv"
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

// Numbers writes numbers as commands take them, such as 3,17-40. They have to be in order.
func Numbers(all []int64) string {
	var b strings.Builder
	for i := 0; i < len(all); {
		j := i
		for j+1 < len(all) && all[j+1] == all[j]+1 {
			j++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(all[i], 10))
		if j > i {
			b.WriteString("-" + strconv.FormatInt(all[j], 10))
		}
		i = j + 1
	}
	return b.String()
}
