package main

// nearest returns the name that is typed as word with at most two slips, or "".
func nearest(word string, names []string) string {
	best, slips := "", 3
	for _, name := range names {
		if d := distance(word, name); d < slips && d < len(name) {
			best, slips = name, d
		}
	}
	return best
}

// distance counts the letters to insert, remove or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
