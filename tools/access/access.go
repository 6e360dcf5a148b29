// Package access is `landfall access`: what each service may do on Kafka, as commands, as JSON, or made on the cluster; and why somebody
// may do something by the gateway, or not.
package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"landfall.build/platform/configuration"
	"landfall.build/platform/journal/kafka/credentials"
	"landfall.build/platform/journal/rights"
)

// DefaultPrefix begins the principal of each account.
const DefaultPrefix = "User:landfall-"

// Command returns `landfall access`.
func Command(load func(file string) (*configuration.Configuration, error)) *cobra.Command {
	c := &cobra.Command{Use: "access", Short: "What people and programs may do by the gateway, and services on Kafka"}
	var file, prefix string
	var apply, show, asJSON bool
	var brokers []string
	k := &cobra.Command{
		Use:   "kafka (--print | --apply)",
		Short: "Print the ACLs that a Kafka cluster needs, or make them",
		Long: `Print the ACLs that each service needs, as commands for kafka-acls.sh or as JSON, or make them on the cluster. Each service has the
principal PREFIX and its name; operator is the account of the commands of people, clients that of other programs, up that of
` + "`landfall up`" + ` on a cluster. With --apply the account is that of the configuration whose {service} is admin: it has to be allowed to
alter the cluster's ACLs. ACLs that are there already stay.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if show == apply {
				return errors.New("say what to do: --print, or --apply")
			}
			if err := checkPrefix(prefix); err != nil {
				return err
			}
			if show {
				if asJSON {
					return printJSON(cmd.OutOrStdout(), prefix)
				}
				printCommands(cmd.OutOrStdout(), prefix)
				return nil
			}
			config, err := load(file)
			if err != nil {
				return err
			}
			if len(brokers) == 0 {
				brokers = config.Broker.Brokers
			}
			if len(brokers) == 0 {
				return errors.New("no broker: give --brokers host:port, or broker.brokers in the configuration")
			}
			n, err := Apply(cmd.Context(), append(credentials.Options(config.Broker, rights.Admin), kgo.SeedBrokers(brokers...)), prefix)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d ACLs of %d accounts are there\n", n, len(rights.Accounts()))
			return nil
		},
	}
	k.Flags().BoolVar(&show, "print", false, "print commands for kafka-acls.sh; change nothing")
	k.Flags().BoolVar(&apply, "apply", false, "make the ACLs on the cluster")
	k.Flags().BoolVar(&asJSON, "json", false, "print one JSON value")
	k.Flags().StringVar(&prefix, "principal-prefix", DefaultPrefix, "what the principal of each account begins with")
	k.Flags().StringVar(&file, "config", "landfall.config.yaml", "configuration file, for --apply")
	k.Flags().StringSliceVar(&brokers, "brokers", nil, "host:port of the cluster (default: the configuration's)")
	c.AddCommand(k, explainCommand(load))
	return c
}

// checkPrefix refuses what is no beginning of a principal, or would not be one word of a shell.
func checkPrefix(prefix string) error {
	kind, name, found := strings.Cut(prefix, ":")
	if !found || kind == "" || strings.ContainsFunc(prefix, func(r rune) bool { return r <= ' ' || r == '\'' || r == 0x7f }) || strings.Contains(name, "*") {
		return fmt.Errorf("--principal-prefix %q is no beginning of a principal: as in %s", prefix, DefaultPrefix)
	}
	return nil
}

// printCommands prints a call of kafka-acls.sh for each right.
func printCommands(w io.Writer, prefix string) {
	fmt.Fprintln(w, "# BROKERS are addresses of the cluster; admin.properties has the account that may change its ACLs.")
	for _, account := range rights.Accounts() {
		fmt.Fprintf(w, "\n# %s\n", account)
		for _, r := range rights.Of(account) {
			fmt.Fprintf(w, `kafka-acls.sh --bootstrap-server "$BROKERS" --command-config admin.properties --add --allow-principal '%s%s'`, prefix, account)
			for _, operation := range r.OperationNames() {
				fmt.Fprintf(w, " --operation %s", operation)
			}
			fmt.Fprintf(w, " --%s %s", r.Kind, r.Name)
			if r.Prefixed {
				fmt.Fprint(w, " --resource-pattern-type prefixed")
			}
			fmt.Fprintln(w)
		}
	}
}

// right is one right in JSON.
type right struct {
	Principal  string   `json:"principal"`
	Account    string   `json:"account"`
	Resource   string   `json:"resource"`
	Name       string   `json:"name"`
	Pattern    string   `json:"pattern"`
	Operations []string `json:"operations"`
}

func printJSON(w io.Writer, prefix string) error {
	var out struct {
		ACLs []right `json:"acls"`
	}
	for _, account := range rights.Accounts() {
		for _, r := range rights.Of(account) {
			pattern := "literal"
			if r.Prefixed {
				pattern = "prefixed"
			}
			out.ACLs = append(out.ACLs, right{prefix + account, account, string(r.Kind), r.Name, pattern, r.OperationNames()})
		}
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}

// Apply makes the ACLs of every account, and returns how many there are.
func Apply(ctx context.Context, client []kgo.Opt, prefix string) (int, error) {
	c, err := kgo.NewClient(client...)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	admin, n := kadm.NewClient(c), 0
	for _, account := range rights.Accounts() {
		for _, r := range rights.Of(account) {
			results, err := admin.CreateACLs(ctx, r.ACL(prefix+account))
			if err != nil {
				return n, fmt.Errorf("make the ACLs of %s: %w", account, err)
			}
			for _, result := range results {
				if result.Err != nil {
					return n, fmt.Errorf("make the ACLs of %s on %s: %w %s", account, r.Name, result.Err, result.ErrMessage)
				}
				n++
			}
		}
	}
	return n, nil
}
