package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"landfall.build/engine/features"
	"landfall.build/engine/prediction"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/registry"
	"landfall.build/services/trainer"
	"landfall.build/services/trainer/dataset"
	"landfall.build/tools/client"
	"landfall.build/tools/history"
	"landfall.build/tools/replay"
	"landfall.build/tools/trained"
)

// TrainedQueue is what `landfall train queue --json` prints of each kind.
type TrainedQueue struct {
	Queue string `json:"queue"`
	Kind  string `json:"kind"`
	// Why is set if nothing was trained; the rest is then empty.
	Why     string                        `json:"why,omitempty"`
	Version string                        `json:"version,omitempty"`
	Better  bool                          `json:"better"`
	Verdict string                        `json:"verdict,omitempty"`
	Rows    RowCounts                     `json:"rows"`
	Figures map[string]map[string]float64 `json:"figures,omitempty"`
	Weights []Weight                      `json:"weights,omitempty"`
	// Written is what was written to landfall.models: promoted, trained, or empty.
	Written string `json:"written,omitempty"`
	// Plots are the files of the report.
	Plots []string `json:"plots,omitempty"`
}

type queueOptions struct {
	place            history.Place
	source           replay.Source
	queue, kind      string
	days             int
	publish, promote bool
	report           string
	asJSON           bool
}

func queueCommand(load history.Load, version string, logger *slog.Logger) *cobra.Command {
	var o queueOptions
	c := &cobra.Command{
		Use:   "queue QUEUE",
		Short: "Train the models of a queue from its history in ClickHouse, as the trainer does",
		Long: "Train the models of a queue from its history in ClickHouse, as the trainer does every week, and compare them with\n" +
			"the models in use and with rolling baselines on the newest fifth. Nothing is written unless --publish says so (then what\n" +
			"is better is put into use, as the trainer would), or --promote (then it is put into use whatever it is).",
		Example: "  landfall train queue shop --report report\n  landfall train queue shop --kind duration --publish",
		Args:    client.Exactly("QUEUE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.queue = args[0]
			o.source.Load, o.source.Data, o.source.Config = load, o.place.Data, o.place.Configuration
			return o.run(cmd, load, version, logger)
		},
	}
	c.Flags().StringVar(&o.place.DSN, "clickhouse", "", "DSN of the history (default: the configuration's, $LANDFALL_CLICKHOUSE_DSN, or that of landfall up)")
	c.Flags().StringVar(&o.place.Data, "data", "", "data directory of landfall up (default: the configuration's)")
	c.Flags().StringVar(&o.place.Configuration, "config", "landfall.config.yaml", "configuration file")
	c.Flags().StringSliceVar(&o.source.Brokers, "brokers", nil, "host:port of the log's brokers")
	c.Flags().StringVar(&o.kind, "kind", "", "success, conflict or duration (default: all)")
	c.Flags().IntVar(&o.days, "days", 90, "how far back to look")
	c.Flags().BoolVar(&o.publish, "publish", false, "write what came of it, and put what is better into use")
	c.Flags().BoolVar(&o.promote, "promote", false, "put it into use though it is no better")
	c.Flags().StringVar(&o.report, "report", "", "folder for plots: calibration, error over time, weights")
	c.Flags().BoolVar(&o.asJSON, "json", false, "one JSON value")
	c.MarkFlagsMutuallyExclusive("publish", "promote")
	return c
}

func (o *queueOptions) run(cmd *cobra.Command, load history.Load, version string, logger *slog.Logger) error {
	kinds := prediction.Kinds()
	if o.kind != "" {
		kind := prediction.KindOf(o.kind)
		if kind == eventsv1.ModelKind_MODEL_KIND_UNSPECIFIED {
			return fmt.Errorf("--kind is %q; it is success, conflict or duration", o.kind)
		}
		kinds = []eventsv1.ModelKind{kind}
	}
	if o.days < 1 || o.days > 3650 {
		return fmt.Errorf("--days is %d; it is from 1 to 3650", o.days)
	}
	dsn, err := o.place.Find(load)
	if err != nil {
		return err
	}
	if err := o.checkKnown(cmd.Context(), dsn); err != nil {
		return err
	}
	log, closeLog, err := o.source.Open(cmd.Context(), logger)
	if err != nil {
		return err
	}
	defer closeLog()
	t := trainer.New(trainer.Options{
		Log: log, Open: func() (trainer.Source, error) { return dataset.Open(dsn) }, Queues: []string{o.queue},
		History: time.Duration(o.days) * 24 * time.Hour, Instance: "train", Version: version, Logger: logger,
	})
	outcomes, err := t.Once(cmd.Context(), kinds, o.publish)
	if err != nil {
		return err
	}
	all := make([]TrainedQueue, 0, len(outcomes))
	var plotting error
	for _, out := range outcomes {
		r := TrainedQueue{Queue: out.Queue, Kind: prediction.KindName(out.Kind)}
		if out.Report == nil {
			r.Why = out.Why.Error()
			all = append(all, r)
			continue
		}
		card := out.Report.Model.Card
		r.Version, r.Better, r.Verdict, r.Figures = out.Report.Model.Version, out.Report.Better, card.Verdict, finiteOnly(out.Report.Figures)
		r.Rows = RowCounts{int(card.TrainingRows), int(card.ChoosingRows), int(card.NewestRows)}
		for _, w := range out.Report.Weights {
			r.Weights = append(r.Weights, Weight{w.Feature, w.Weight})
		}
		switch {
		case o.publish && r.Better:
			r.Written = "promoted"
		case o.publish:
			r.Written = "trained"
		case o.promote:
			m := &eventsv1.ModelPromoted{Model: out.Report.Model, Who: client.Person(), Why: "by hand: " + card.Verdict, StampUs: time.Now().UnixMicro(), Actor: client.Operator("landfall train queue")}
			if err := registry.Publish(cmd.Context(), log, events.ServiceTrainer, "train", o.queue, m); err != nil {
				return err
			}
			r.Written = "promoted"
		}
		if o.report != "" {
			var failed error
			if r.Plots, failed = writePlots(filepath.Join(o.report, o.queue), out.Report); failed != nil {
				plotting = errors.Join(plotting, failed)
			}
		}
		all = append(all, r)
		if !o.asJSON {
			trained.WriteCard(cmd.OutOrStdout(), out.Report.Model)
		}
	}
	if o.asJSON {
		return errors.Join(json.NewEncoder(cmd.OutOrStdout()).Encode(all), plotting)
	}
	for _, r := range all {
		r.print(cmd.OutOrStdout())
	}
	return plotting
}

// checkKnown returns an error if the history has no prediction of the queue: most likely its name is mistyped.
func (o *queueOptions) checkKnown(ctx context.Context, dsn string) error {
	s, err := dataset.Open(dsn)
	if err != nil {
		return err
	}
	defer s.Close()
	queues, err := s.Queues(ctx)
	if err != nil || slices.Contains(queues, o.queue) {
		return err
	}
	if len(queues) == 0 {
		return errors.New("the history holds no prediction of any queue yet")
	}
	return fmt.Errorf("the history holds no prediction of a queue %q; it has: %s", o.queue, client.Plain(strings.Join(queues, ", ")))
}

func (r TrainedQueue) print(out io.Writer) {
	switch {
	case r.Why != "":
		fmt.Fprintf(out, "%s: nothing was trained: %s\n", r.Kind, r.Why)
	case r.Written == "promoted":
		fmt.Fprintf(out, "%s: %.12s predicts from now on\n", r.Kind, r.Version)
	case r.Better:
		fmt.Fprintf(out, "%s: better; --publish would put it into use\n", r.Kind)
	default:
		fmt.Fprintf(out, "%s: no better than what there is\n", r.Kind)
	}
	for _, p := range r.Plots {
		fmt.Fprintf(out, "  %s\n", p)
	}
}

// finiteOnly leaves out numbers that JSON cannot hold.
func finiteOnly(figures map[string]map[string]float64) map[string]map[string]float64 {
	out := map[string]map[string]float64{}
	for name, of := range figures {
		out[name] = map[string]float64{}
		for what, value := range of {
			if finite(value) != nil {
				out[name][what] = value
			}
		}
	}
	return out
}

// featuresCommand is `landfall train features`: the schema.
func featuresCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "features", Short: "The features that models are trained on: name, type, unit, and the event that each comes from", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return writeSchema(cmd.OutOrStdout(), asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON value")
	return c
}

// described is a feature as `landfall train features --json` prints it.
type described struct {
	Of     string `json:"of"`
	Index  int    `json:"index"`
	Name   string `json:"name"`
	Type   string `json:"type"`
	Unit   string `json:"unit,omitempty"`
	Source string `json:"source"`
	Group  string `json:"group"`
}

func writeSchema(out io.Writer, asJSON bool) error {
	var all []described
	for _, x := range []struct {
		of     string
		schema []features.Feature
	}{{"change", features.OfChange()}, {"pair", features.OfPair()}} {
		for i, f := range x.schema {
			// ClickHouse counts from 1.
			all = append(all, described{x.of, i + 1, f.Name, f.Type.String(), f.Unit, f.Source, f.Group})
		}
	}
	if asJSON {
		return json.NewEncoder(out).Encode(all)
	}
	fmt.Fprintf(out, "schema %d\n", features.Version)
	for _, d := range all {
		fmt.Fprintf(out, "%-7s %3d  %-26s %-8s %-18s %-16s %s\n", d.Of, d.Index, d.Name, d.Type, d.Unit, d.Source, d.Group)
	}
	return nil
}
