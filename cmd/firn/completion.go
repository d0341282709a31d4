package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// shells are those that completion is made for.
var shells = []string{"bash", "zsh", "fish", "powershell"}

func newCompletion() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print the script that completes firn's commands in a shell",
		Long: `Print the script that completes commands, flags and the names of layouts in a
shell. Load it in the shell's own start file, or put it where the shell looks for
such scripts.`,
		Example: `  source <(firn completion bash)
  firn completion zsh > "${fpath[1]}/_firn"
  firn completion fish > ~/.config/fish/completions/firn.fish
  firn completion powershell | Out-String | Invoke-Expression`,
		Args:      arguments(1, 1),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
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
			f := bad("no completion for %q; there is %s", args[0], strings.Join(shells, ", "))
			if near := nearest(args[0], shells); near != "" {
				f = f.hint("firn completion %s", near)
			}
			return f
		},
	}
}
