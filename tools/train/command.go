package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"landfall.build/tools/history"
)

// Command is `landfall train`.
func Command(load history.Load, version string, logger *slog.Logger) *cobra.Command {
	c := &cobra.Command{
		Use:   "train",
		Short: "Fit models of durations and outcomes, to a queue's history or a CSV file, and say how good they are",
	}
	c.AddCommand(durationCommand(), outcomeCommand(), recordedCommand(), queueCommand(load, version, logger), featuresCommand())
	return c
}

func durationCommand() *cobra.Command {
	var o DurationOptions
	var asJSON bool
	c := &cobra.Command{
		Use:   "duration --csv FILE --target COLUMN",
		Short: "Fit a distribution of a number, such as the seconds of a build (NGBoost)",
		Long: "Fit a distribution of a number to the columns of a CSV file with a header: natural gradient boosting.\nNumbers may be missing; texts are encoded. " +
			"Tested are the rows that --test-rows names, or the newest\nby --time; without either, nothing is tested.",
		Example: "  landfall train duration --csv builds.csv --target seconds --distribution lognormal --time started --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Tune && o.Time == "" {
				return errors.New("--tune needs --time: it chooses by newer rows")
			}
			if o.Ended != "" && o.Time == "" {
				return errors.New("--ended needs --time: it says what had ended by then")
			}
			if o.Rounds < 1 {
				return fmt.Errorf("--rounds is %d; at least one is needed", o.Rounds)
			}
			if o.Rate == 0 { // a library's zero is its default; anything else that it does not take, it says
				return errors.New("--rate is 0; it is above 0, and at most 1")
			}
			if err := checkShare(o.TestShare); err != nil {
				return err
			}
			report, err := Duration(cmd.Context(), o, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(report)
			}
			report.print(cmd.OutOrStdout())
			return nil
		},
	}
	c.Flags().StringVar(&o.CSV, "csv", "", "table with a header")
	c.Flags().StringVar(&o.Target, "target", "", "column to predict")
	c.Flags().StringVar(&o.Distribution, "distribution", "normal", "normal, or lognormal for what is above zero")
	c.Flags().IntVar(&o.Rounds, "rounds", 500, "boosting rounds")
	c.Flags().Float64Var(&o.Rate, "rate", 0.01, "learning rate")
	c.Flags().BoolVar(&o.Exact, "exact", false, "try every split point, as the authors' implementation does; else bins")
	c.Flags().StringVar(&o.TestRows, "test-rows", "", "file with the numbers of the rows to test on, from 0, the header not counted")
	c.Flags().StringVar(&o.Time, "time", "", "column of times, to test on the newest rows")
	c.Flags().Float64Var(&o.TestShare, "test-share", 0.2, "share of the rows that is tested on, with --time")
	c.Flags().StringVar(&o.Ended, "ended", "", endedUsage)
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	c.Flags().StringVar(&o.Model, "model", "", "file to write the model to, for landfall simulate --duration-model")
	c.Flags().StringVar(&o.Over, "over", "", "column, such as a rolling median, that the target is learned relative to; rows without it are left out")
	c.Flags().BoolVar(&o.Tune, "tune", false, "with --time: end at the round that is best on newer rows, and fit the spread to them; --rounds is the most")
	c.MarkFlagRequired("csv")
	c.MarkFlagRequired("target")
	c.MarkFlagsMutuallyExclusive("test-rows", "time")
	return c
}

func outcomeCommand() *cobra.Command {
	var o OutcomeOptions
	var asJSON bool
	c := &cobra.Command{
		Use:   "outcome --csv FILE --target COLUMN --time COLUMN",
		Short: "Fit the probability of a yes or no, such as whether a change lands (logistic regression and trees)",
		Long: "Fit the probability that a column is 1 (or true) to the other columns of a CSV file with a header: logistic\nregression with recursive elimination of features, and boosted trees beside it. " +
			"The newest rows by --time are used for\ntesting alone; settings are chosen on windows of the others.",
		Example: "  landfall train outcome --csv changes.csv --target landed --time admitted --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkShare(o.TestShare); err != nil {
				return err
			}
			report, err := Outcome(cmd.Context(), o, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(report)
			}
			report.print(cmd.OutOrStdout())
			return nil
		},
	}
	c.Flags().StringVar(&o.CSV, "csv", "", "table with a header")
	c.Flags().StringVar(&o.Target, "target", "", "column to predict: 0 and 1, or true and false")
	c.Flags().StringVar(&o.Time, "time", "", "column of times (seconds, or RFC 3339)")
	c.Flags().StringVar(&o.Ended, "ended", "", endedUsage)
	c.Flags().Float64Var(&o.TestShare, "test-share", 0.2, "share of the rows, the newest, that is tested on")
	c.Flags().StringVar(&o.Model, "model", "", "file to write the model to, for landfall simulate --success-model")
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	for _, name := range []string{"csv", "target", "time"} {
		c.MarkFlagRequired(name)
	}
	return c
}

const endedUsage = "column, no feature, of when the target was known: rows are learned from once it was"

func checkShare(share float64) error {
	if share > 0 && share < 1 {
		return nil
	}
	return fmt.Errorf("--test-share is %g; it is above 0 and below 1", share)
}

func (r *DurationReport) print(out io.Writer) {
	n := len(r.TrainLoss)
	fmt.Fprintf(out, "trained on %d rows, %d rounds, %.1f s; loss %.4f, at last %.4f\n", r.TrainRows, n, r.Seconds, r.TrainLoss[0], r.TrainLoss[n-1])
	if t := r.Test; t != nil {
		fmt.Fprintf(out, "%d test rows: NLL %s, RMSE %s, MAPE %s, %s within the 90 %% interval\n", t.Rows, figure(t.NLL), figure(t.RMSE), figure(t.MAPE), figure(t.Coverage90))
	}
}

func (r *OutcomeReport) print(out io.Writer) {
	fmt.Fprintf(out, "trained on %d rows, chosen by the newest %d of them, tested on the newest %d, of which %.3f are true; %.1f s\n", r.Rows.Train, r.Rows.Choose, r.Rows.Test, r.Test.Share, r.Seconds)
	fmt.Fprintf(out, "AUC %s, log loss %s, Brier %s, calibration error %s, accuracy %s\n", figure(r.Test.AUC), figure(r.Test.LogLoss), figure(r.Test.Brier), figure(r.Test.ECE), figure(r.Test.Accuracy))
	for i, name := range r.Features[:min(len(r.Features), 15)] {
		fmt.Fprintf(out, "  %+.3f  %s\n", r.Weights[i], name)
	}
	if more := len(r.Features) - 15; more > 0 {
		fmt.Fprintf(out, "  and %d more\n", more)
	}
}

func figure(x *float64) string {
	if x == nil {
		return "none"
	}
	return fmt.Sprintf("%.4f", *x)
}
