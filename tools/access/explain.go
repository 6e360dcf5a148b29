package access

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"landfall.build/platform/access"
	"landfall.build/platform/configuration"
)

// ruleLine is what one rule says, in JSON.
type ruleLine struct {
	Rule    string `json:"rule"`
	Role    string `json:"role"`
	Applies bool   `json:"applies"`
	Why     string `json:"why"`
}

// explanation is what `landfall access explain` prints.
type explanation struct {
	Allowed bool   `json:"allowed"`
	Own     bool   `json:"allowed_for_own_changes"`
	Role    string `json:"role"`
	Reason  string `json:"reason,omitempty"`
	// Rules are those of the configuration, in its order.
	Rules []ruleLine `json:"rules"`
}

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

Verbs: ` + verbs() + `. Exit code 1: not allowed.`,
		Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := load(file)
			if err != nil {
				return err
			}
			out, err := explain(config, args[0], args[1], args[2], issuer, email, claims)
			if err != nil {
				return err
			}
			if asJSON {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				err = encoder.Encode(out)
			} else {
				out.print(cmd)
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

func verbs() string {
	var names []string
	for _, v := range access.Verbs() {
		names = append(names, string(v))
	}
	return strings.Join(names, ", ")
}

func explain(config *configuration.Configuration, user, verb, queue, issuer, email string, claims []string) (explanation, error) {
	v, known := access.ParseVerb(verb)
	if !known {
		return explanation{}, fmt.Errorf("%q is no verb; verbs are %s", verb, verbs())
	}
	if !slices.Contains(config.QueueNames(), queue) {
		return explanation{}, fmt.Errorf("there is no queue %q; the queues are %s", queue, strings.Join(config.QueueNames(), ", "))
	}
	names := config.Access.IssuerNames()
	if issuer = cmp.Or(issuer, strings.Join(names, ", ")); config.Access.Mode == configuration.AccessRequired && !slices.Contains(names, issuer) {
		if len(names) == 0 {
			return explanation{}, errors.New("no issuer is configured (access.issuers), so nobody but tokens has a role; landfall token list shows what each is for")
		}
		return explanation{}, fmt.Errorf("which issuer? give --issuer: %s", strings.Join(names, ", "))
	}
	given := map[string]any{}
	for _, text := range claims {
		name, value, is := strings.Cut(text, "=")
		if !is || name == "" {
			return explanation{}, fmt.Errorf("--claim %q is not NAME=VALUE", text)
		}
		list, _ := given[name].([]any)
		given[name] = append(list, value)
	}
	rules := access.NewRules(config.Access)
	who := access.Identified(cmp.Or(config.Access.Issuers[issuer].URL, access.IssuerOpen), user, user, email, given)
	decision, own := rules.Decide(who, v, queue, access.Owner{}), rules.Decide(who, v, queue, access.Owner{New: true})
	out := explanation{Allowed: decision.Allowed, Own: own.Allowed, Role: decision.Role.String(), Reason: decision.Reason, Rules: []ruleLine{}}
	for _, line := range rules.Explain(who, queue) {
		out.Rules = append(out.Rules, ruleLine{fmt.Sprintf("access.rules[%d]", line.Rule), line.Role.String(), line.Applies, line.Why})
	}
	return out, nil
}

func (e explanation) print(cmd *cobra.Command) {
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
