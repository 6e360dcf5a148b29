// Package replay is `landfall replay`: it runs the cores again over a log to see whether they still say what was
// written (--verify), and shows the queue as it was at a moment (--at).
package replay

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"landfall.build/platform/configuration"
)

// Command is `landfall replay`. Its error is Differs if a record is not what this code says. load reads a
// configuration file.
func Command(version string, load func(file string) (*configuration.Configuration, error), logger *slog.Logger) *cobra.Command {
	source, v, m := Source{Load: load}, Verification{Version: version}, Moment{}
	var verify bool
	c := &cobra.Command{
		Use:   "replay (--verify | --at TIME|OFFSET)",
		Short: "Run the cores again over a log, or show the queue as it was",
		Long: `--verify runs the cores of enumerator, profiler, prioritizer and selector again over what they read, and
compares every record that they wrote with what they say now, byte for byte. Of the lander it asks the guard
again for each intention to land, and compares what closed it. Records that another version of
landfall wrote are counted and named, and not compared. The first difference is shown, with the input that
caused it.

--at shows the queue as the pipeline saw it: at a moment (14:05, "2026-01-31 14:05:30", RFC 3339, or -10m for
ten minutes ago), or once the record at an offset of landfall.speculations had been answered.

The log is at --brokers, in the data directory of a ` + "`landfall up`" + ` that runs or not (--data), or where --config says.
No record is written to it.

Exit codes of --verify: 0 all that was compared is identical, 1 something differs, 3 it could not be made, or
nothing was compared: every record is of another version, or the cores have written none.`,
		Example: `  landfall replay --verify --data .landfall
  landfall replay --verify --all-versions --brokers kafka-1:9092 --json
  landfall replay --at 14:05 --queue main --brokers kafka-1:9092
  landfall replay --at 1234 --change feature/x --full --data .landfall`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if verify == (m.At != "") {
				return errors.New("say what to do: --verify, or --at TIME|OFFSET; see landfall replay --help")
			}
			if err := fits(cmd.Flags().Changed, verify); err != nil {
				return err
			}
			cmd.SilenceUsage = true
			log, done, err := source.Open(cmd.Context(), logger)
			if err != nil {
				return err
			}
			defer done()
			var out, progress io.Writer = cmd.OutOrStdout(), cmd.ErrOrStderr()
			if verify {
				return v.Run(cmd.Context(), log, out, progress)
			}
			m.JSON = v.JSON
			return m.Show(cmd.Context(), log, out, progress)
		},
	}
	s := c.Flags()
	s.BoolVar(&verify, "verify", false, "run the cores again and compare what they wrote")
	s.BoolVar(&v.AllVersions, "all-versions", false, "with --verify: compare what other versions wrote, too")
	s.StringVar(&m.At, "at", "", "show the queue as it was at a moment, or at an offset of landfall.speculations")
	s.StringVarP(&m.Queue, "queue", "q", "", "with --at: this queue (default: all that the log has)")
	s.StringVar(&m.Change, "change", "", "with --at: explain this change, as it was")
	s.BoolVar(&m.Full, "full", false, "with --change: every factor, where it comes from, and what it would take to decide")
	s.IntVar(&m.Finished, "finished", 0, "with --at: list so many of those that had left the queue, newest first")
	s.StringVar(&source.Config, "config", "landfall.config.yaml", "configuration file, for where the log is")
	s.StringSliceVar(&source.Brokers, "brokers", nil, "host:port of the log's brokers")
	s.StringVar(&source.Data, "data", "", "data directory of landfall up")
	s.BoolVar(&v.JSON, "json", false, "print one JSON value on standard output and nothing else there")
	return c
}

// fits refuses what the other half of the command takes: ignored, it would look heeded.
func fits(given func(flag string) bool, verify bool) error {
	at := []string{"queue", "change", "full", "finished"}
	switch {
	case verify:
		for _, name := range at {
			if given(name) {
				return fmt.Errorf("--%s is for --at; --verify is always of the whole log", name)
			}
		}
	case given("all-versions"):
		return errors.New("--all-versions is for --verify; --at takes what was written, by whichever version")
	case given("full") && !given("change"):
		return errors.New("--full is of one change: name it with --change")
	}
	return nil
}
