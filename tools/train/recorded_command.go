package train

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"landfall.build/tools/train/recorded"
)

// recordedCommand is `landfall train recorded`.
func recordedCommand() *cobra.Command {
	var outcomes, durations string
	var ends bool
	c := &cobra.Command{
		Use:   "recorded FOLDER",
		Short: "Make tables to train on from recorded builds of Jenkins",
		Long:  "Make tables to train on from a folder of recorded builds of pull requests (the form of the LRTS data set).\nEach row has what was known when the build began, from the builds that had ended by then.",
		Example: "  landfall train recorded lrts --outcomes outcomes.csv --durations durations.csv\n" +
			"  landfall train outcome --csv outcomes.csv --target passed --time began\n" +
			"  landfall train duration --csv durations.csv --target seconds --over typical_seconds --distribution lognormal --time began --tune",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if outcomes == "" && durations == "" {
				return errors.New("nothing to write: give --outcomes FILE, --durations FILE, or both")
			}
			builds, err := recorded.ReadJenkins(args[0])
			if err != nil {
				return err
			}
			rows := recorded.Rows(builds)
			for _, table := range []struct {
				file  string
				write func(io.Writer, []recorded.Row, bool) (int, error)
			}{{outcomes, recorded.WriteOutcomes}, {durations, recorded.WriteDurations}} {
				if table.file == "" {
					continue
				}
				n, err := writeFile(table.file, func(w io.Writer) (int, error) { return table.write(w, rows, ends) })
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "%s: %d of %d builds\n", table.file, n, len(rows))
			}
			return nil
		},
	}
	c.Flags().StringVar(&outcomes, "outcomes", "", "file to write a table of outcomes to")
	c.Flags().BoolVar(&ends, "ends", false, "write also when each build ended, for landfall train --ended "+recorded.ColumnEnded)
	c.Flags().StringVar(&durations, "durations", "", "file to write a table of durations to")
	return c
}

func writeFile(path string, write func(io.Writer) (int, error)) (n int, err error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	w := bufio.NewWriter(f)
	n, err = write(w)
	return n, errors.Join(err, w.Flush(), f.Close())
}
