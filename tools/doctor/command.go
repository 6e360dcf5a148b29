package doctor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"landfall.build/tools/client"
)

// Unwell is the error of the command if it has found and printed an error.
type Unwell struct{}

func (Unwell) Error() string { return "something is wrong" }

// ExitCode returns the exit code of the command.
func (Unwell) ExitCode() int { return 1 }

const (
	roomy      = 1 << 30
	brokerWait = 5 * time.Second
)

// Command returns `landfall doctor`.
func Command(config string, logger *slog.Logger) *cobra.Command {
	o := Options{Logger: logger, Room: roomy, Wait: brokerWait}
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Look at everything that a queue rests on, and say what is wrong and what to do",
		Long: `Look at the configuration, the repositories and the right to push to them (nothing is pushed), the targets and the tools of steps,
the disk, the isolation of steps, the log and its topics, the clocks, ClickHouse, and at what runs; say what is wrong, why it matters
and what to do. Run it on each machine, as the account that runs Landfall there. It changes nothing but the mirrors of the
repositories in the data directory.

Exit codes: 0 no error (there may be warnings), 1 an error.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SilenceUsage = true
			findings := Examine(cmd.Context(), o)
			unwell := slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity == Error })
			if err := show(cmd.OutOrStdout(), findings, !unwell, asJSON); err != nil {
				return err
			}
			if unwell {
				return Unwell{}
			}
			return cmd.Context().Err()
		},
	}
	c.Flags().StringVar(&o.Config, "config", config, "configuration file")
	c.Flags().StringVar(&o.Server, "server", cmp.Or(os.Getenv("LANDFALL_SERVER"), client.DefaultServer), "address of the gateway (LANDFALL_SERVER)")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON value")
	return c
}

// show prints the findings.
func show(out io.Writer, findings []Finding, healthy, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(struct {
			Healthy  bool      `json:"healthy"`
			Findings []Finding `json:"findings"`
		}{healthy, append([]Finding{}, findings...)})
	}
	out = client.Harmless(out)
	for _, f := range findings {
		where := ""
		if f.Queue != "" {
			where = "queue " + f.Queue + ": "
		}
		fmt.Fprintf(out, "%s %s: %s%s\n  Why it matters: %s\n", f.Severity, f.Code, where, f.Message, f.Why)
		if f.Advice != "" {
			fmt.Fprintf(out, "  What to do: %s\n", f.Advice)
		}
	}
	if len(findings) == 0 {
		fmt.Fprintln(out, "Nothing is wrong.")
	}
	return nil
}
