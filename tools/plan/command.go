package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
)

// Command is `landfall plan`.
func Command() *cobra.Command {
	var snapshot string
	var asJSON bool
	var how planner
	c := &cobra.Command{
		Use:   "plan --snapshot FILE",
		Short: "Plan a queue given as JSON: which builds are worth most, what may be decided",
		Long: `Plan a queue given as JSON, with the cores that run in production: the builds that are worth most, best first,
with what is to be done about each, the running builds that are to end, and what may become of each change.

A snapshot has changes in queue order, conflicts between them, and builds; all but the ids has a default:
  {"now":"2026-01-05T10:00:00Z","slots":8,"threshold":0.1,"abort_threshold":0.05,"bypass_threshold":0.5,
   "changes":[{"id":"C1","success":0.9,"duration":{"mean":1800,"std":300}},{"id":"C2","requires":[],"held":false}],
   "conflicts":[{"ahead":"C1","behind":"C2","probability":0.05,"merge_conflict":false}],
   "builds":[{"change":"C2","assumed":["C1"],"state":"running","started":"2026-01-05T09:50:00Z"}]}

Whatever is wrong with it is named, all at once, and nothing is planned.`,
		Example: `  landfall plan --snapshot queue.json
  landfall plan --snapshot queue.json --explain
  landfall queue --json | my-what-if | landfall plan --snapshot - --json | jq '.builds[] | select(.action=="start")'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SilenceUsage = true
			if snapshot == "" {
				return errors.New("--snapshot is missing: a file, or - for standard input")
			}
			stop := time.AfterFunc(time.Second, func() { fmt.Fprintln(cmd.ErrOrStderr(), "planning …") })
			defer stop.Stop()
			q, err := open(snapshot, cmd.InOrStdin())
			if err != nil {
				return err
			}
			p := how.plan(q)
			stop.Stop()
			if !asJSON {
				return p.write(cmd.OutOrStdout())
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(p)
		},
	}
	c.Flags().StringVar(&snapshot, "snapshot", "", "the queue as JSON: a file, or - for standard input")
	c.Flags().BoolVar(&how.explained, "explain", false, "say why, and show each factor with its value and where it comes from")
	c.Flags().BoolVar(&how.asRun, "as-run", false, "plan as a running queue does, which funds bypasses only where they take few builds, and lets a worthless build go on while nobody waits for its slot")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON value on standard output and nothing else there")
	return c
}

func open(file string, standard io.Reader) (*queue, error) {
	if file == "-" {
		return read(standard)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return read(f)
}
