package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/nearest"
	"github.com/firn-id/firn/internal/ui"
)

// shells are those that completion is made for.
var shells = []string{"bash", "zsh", "fish", "powershell"}

func newCompletion() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print the script that completes firn's commands in a shell",
		Long: `Print the script that completes commands, flags and the names of layouts and of
the series in firn.yaml in a shell. Load it in the shell's own start file, or put it
where the shell looks for such scripts.`,
		Example: `  source <(firn completion bash)
  firn completion zsh > "${fpath[1]}/_firn"
  firn completion fish > ~/.config/fish/completions/firn.fish
  firn completion powershell | Out-String | Invoke-Expression`,
		Args:      arguments(1, 1),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			if wantsJSON(cmd) {
				return ui.Bad("firn completion prints a script of a shell, which is no JSON").Hint("leave out --json")
			}
			root, out := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			}
			f := ui.Bad("no completion for %q; there is %s", args[0], strings.Join(shells, ", "))
			if near := nearest.Name(args[0], shells); near != "" {
				f = f.Hint("firn completion %s", near)
			}
			return f
		},
	}
}

// completeSeries offers the series of firn.yaml of these kinds, as first argument.
func completeSeries(of ...string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 || fromEnvironment(cmd) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		s, err := loadSettings(cmd)
		if err != nil || s.File == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []cobra.Completion
		for _, one := range s.File.Series {
			if slices.Contains(of, one.Kind.Text) {
				names = append(names, cobra.CompletionWithDesc(one.Name.Text, one.Kind.Text))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
