package access

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"landfall.build/platform/access"
	"landfall.build/platform/configuration"
)

func explainCommand(load func(file string) (*configuration.Configuration, error)) *cobra.Command {
	var file, issuer, email string
	var claims []string
	var asJSON bool
	c := &cobra.Command{
		Use:   "explain USER VERB QUEUE",
		Short: "Whether somebody may do something to a queue, and what each rule says",
		Long: `Print whether the configuration lets somebody do something to a queue, and what each rule of access.rules says. USER is the subject at the
issuer (the claim sub). What the issuer says besides is given as claims: landfall whoami shows a person's own roles.

  landfall access explain ada pause shop-main --claim groups=shop-operators
  landfall access explain repo:org/shop:ref:refs/heads/main land shop-main --issuer github --claim repository=org/shop

Verbs: ` + access.VerbNames() + `. Exit code 1: not allowed, or to own changes alone.`,
		Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := load(file)
			if err != nil {
				return err
			}
			out, err := access.ExplainTo(config.Access, config.QueueNames(), access.Question{User: args[0], Verb: args[1], Queue: args[2], Issuer: issuer, Email: email, Claims: claims})
			if err != nil {
				return err
			}
			if asJSON {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				err = encoder.Encode(out)
			} else {
				printExplanation(cmd, out)
			}
			if err == nil && !out.Allowed {
				return NotAllowed{}
			}
			return err
		},
	}
	c.Flags().StringVar(&file, "config", "landfall.config.yaml", "configuration file")
	c.Flags().StringVar(&issuer, "issuer", "", "name of the issuer in access.issuers (default: the only one)")
	c.Flags().StringVar(&email, "email", "", "address that the issuer calls verified")
	c.Flags().StringArrayVar(&claims, "claim", nil, "NAME=VALUE of a claim; several of one name make a list")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON value")
	return c
}

// NotAllowed is the error of an explanation that says no: it has been printed.
type NotAllowed struct{}

func (NotAllowed) Error() string { return "not allowed" }

// ExitCode returns the exit code of the command.
func (NotAllowed) ExitCode() int { return 1 }

func printExplanation(cmd *cobra.Command, e access.Explanation) {
	w := cmd.OutOrStdout()
	switch {
	case e.Allowed:
		fmt.Fprintf(w, "allowed, as %s\n", e.Role)
	case e.Own:
		fmt.Fprintf(w, "allowed for own changes, as %s; for others: %s\n", e.Role, e.Reason)
	default:
		fmt.Fprintf(w, "not allowed: %s\n", e.Reason)
	}
	for _, line := range e.Rules {
		mark := "-"
		if line.Applies {
			mark = "+"
		}
		fmt.Fprintf(w, "%s %s gives %s: %s\n", mark, line.Rule, line.Role, line.Why)
	}
}
