package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func newPublicLs() *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the public forms",
		Long: `List the public forms of ids: what each does, whether it needs a key, and the values that it
takes. --as is NAME or NAME:VALUE, where VALUE is the first of the values; firn.yaml has all of
them. docs/public-forms.md says what each form hides and what not.`,
		Example: `  firn public ls
  firn public ls --json`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			enc := json.NewEncoder(out)
			w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "FORM\tKEY\tVALUES\tWHAT IT IS")
			for _, k := range formKinds {
				if wantsJSON(cmd) {
					if err := enc.Encode(formLine{k.name, k.keyed, k.takes, k.about}); err != nil {
						return err
					}
					continue
				}
				key := "-"
				if k.keyed {
					key = "yes"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", k.name, key, orDash(strings.Join(k.takes, ", ")), k.about)
			}
			if wantsJSON(cmd) {
				return nil
			}
			return w.Flush()
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
