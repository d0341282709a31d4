package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A block is a run of statements that are reached together.
type block struct {
	file  string // relative to the repository
	line  int
	text  string // of that line
	times int
}

func (b block) String() string { return fmt.Sprintf("%s:%d: %s", b.file, b.line, b.text) }

// readProfile reads a coverage profile of lines "PATH:LINE.COLUMN,LINE.COLUMN STATEMENTS TIMES".
func readProfile(profile, root string) ([]block, error) {
	var all []block
	sources := map[string][]string{}
	for line := range strings.Lines(profile) {
		place, counts, ok := strings.Cut(strings.TrimSpace(line), " ")
		path, at, _ := strings.Cut(place, ":")
		file, ours := strings.CutPrefix(path, module)
		if !ok || !ours || !slices.Contains(simulated, filepath.ToSlash(filepath.Dir(file))) {
			continue // the mode, and the program itself
		}
		b := block{file: file}
		first, _, _ := strings.Cut(at, ".")
		statements, times, _ := strings.Cut(counts, " ")
		var err error
		if b.line, err = strconv.Atoi(first); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		if b.times, err = strconv.Atoi(times); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		if statements == "0" {
			continue
		}
		if sources[file] == nil {
			text, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				return nil, err
			}
			sources[file] = strings.Split(string(text), "\n")
		}
		b.text = strings.TrimSpace(sources[file][b.line-1])
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b block) int { return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line)) })
	return all, nil
}

// judge says which blocks were not reached and are not listed, and which entries of the list are wrong.
func judge(all []block) (found []string) {
	used := make([]bool, len(elsewhere))
	for _, b := range all {
		at := slices.IndexFunc(elsewhere, func(e exception) bool {
			return e.file == b.file && (e.text == "" || strings.Contains(b.text, e.text))
		})
		switch {
		case at >= 0:
			used[at] = used[at] || b.times == 0
		case b.times == 0:
			found = append(found, b.String()+": no schedule reached it")
		}
	}
	for i, e := range elsewhere {
		if !used[i] {
			found = append(found, fmt.Sprintf("%s: %q is listed in elsewhere.go, and all of it was reached", e.file, e.text))
		}
	}
	return found
}
