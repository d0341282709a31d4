package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/ui"
)

func newPublicLs() *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the public forms",
		Long: `List the public forms of ids: what each does, whether it needs a key, and the values that it
takes. --as is NAME or NAME:VALUE, where VALUE is the first of the values; firn.yaml has all of
them. docs/guides/public-forms.md says what each form hides and what not.`,
		Example: `  firn public ls
  firn public ls --json`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var all []formLine
			for _, k := range config.FormKinds {
				all = append(all, formLine{k.Name, k.Keyed, k.Takes, k.About})
			}
			return ui.Emit(cmd.OutOrStdout(), wantsJSON(cmd), []string{"FORM", "KEY", "VALUES", "WHAT IT IS"}, all, func(l formLine) []any {
				key := "-"
				if l.Key {
					key = "yes"
				}
				return []any{l.Form, key, orDash(strings.Join(l.Values, ", ")), l.About}
			})
		},
	}
}

// A formLine is a form as --json prints it.
type formLine struct {
	Form   string   `json:"form"`
	Key    bool     `json:"key"`
	Values []string `json:"values,omitempty"`
	About  string   `json:"about"`
}
