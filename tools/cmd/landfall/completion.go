package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
)

// wordsOfBash stands in for the function of the package bash-completion where that is not installed.
const wordsOfBash = `
if ! declare -F _get_comp_words_by_ref >/dev/null; then
    _get_comp_words_by_ref()
    {
        words=("${COMP_WORDS[@]}")
        cword=$COMP_CWORD
        cur=${words[cword]}
        prev=${words[cword-1]}
    }
fi
`

func completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use: "completion bash|zsh|fish", Short: "Print a script that completes commands, flags and changes in a shell",
		Long: `Print the script that makes a shell complete commands, flags and the names of pending changes.
For bash, in ~/.bashrc: source <(landfall completion bash)
For zsh, in ~/.zshrc behind compinit: source <(landfall completion zsh)
For fish: landfall completion fish > ~/.config/fish/completions/landfall.fish`,
		ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(shells, args[0]) {
				return errors.New("completion takes the name of one shell: bash, zsh or fish")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			out := cmd.OutOrStdout()
			switch args[0] {
			case "zsh":
				return cmd.Root().GenZshCompletion(out)
			case "fish":
				return cmd.Root().GenFishCompletion(out, true)
			}
			if err := cmd.Root().GenBashCompletionV2(out, true); err != nil {
				return err
			}
			_, err := fmt.Fprint(out, wordsOfBash)
			return err
		},
	}
}
