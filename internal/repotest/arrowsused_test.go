package repotest

import (
	"slices"
	"strings"
	"testing"
)

// TestArrowsUsed: the table allows nothing that no package does, of packages of ours.
func TestArrowsUsed(t *testing.T) {
	all := packages(t)
	for i, r := range arrows {
		if strings.ContainsAny(r.pkg, "*") {
			continue
		}
		imports := importsOf(all, i)
		for _, pattern := range r.ours {
			used := slices.ContainsFunc(imports, func(imp string) bool {
				ours, ok := below(imp)
				return ok && matches(pattern, ours)
			})
			if !used {
				t.Errorf("%s is allowed to import %s, and does not: take it out of arrows", r.pkg, pattern)
			}
		}
	}
}

// importsOf are the imports of the packages that a rule is for.
func importsOf(all []pkg, at int) (imports []string) {
	for _, p := range all {
		if slices.IndexFunc(arrows, func(r rule) bool { return matches(r.pkg, p.name()) }) == at {
			imports = append(imports, p.Imports...)
		}
	}
	return imports
}
