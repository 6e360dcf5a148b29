// Package trained is `landfall models`: which models a queue has, how they compare, and which one predicts.
package trained

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"landfall.build/engine/prediction"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal"
	"landfall.build/platform/registry"
	"landfall.build/tools/client"
	"landfall.build/tools/replay"
)

// Load reads a configuration file.
type Load func(file string) (*configuration.Configuration, error)

// options are those that all subcommands share.
type options struct {
	source replay.Source
	logger *slog.Logger
	queue  string
	asJSON bool
	who    string
	why    string
	// at is the moment whose models are listed, "" for now.
	at string
}

// Command is `landfall models`.
func Command(load Load, logger *slog.Logger) *cobra.Command {
	o := &options{logger: logger}
	o.source.Load = load
	c := &cobra.Command{Use: "models", Short: "List the trained models of a queue, compare them, put one into use or take it out"}
	c.PersistentFlags().StringSliceVar(&o.source.Brokers, "brokers", nil, "host:port of the log's brokers")
	c.PersistentFlags().StringVar(&o.source.Data, "data", "", "data directory of landfall up")
	c.PersistentFlags().StringVar(&o.source.Config, "config", "landfall.config.yaml", "configuration file that names the brokers or the data directory")
	c.PersistentFlags().StringVar(&o.queue, "queue", os.Getenv("LANDFALL_QUEUE"), "queue (default: the configuration's only one)")
	c.PersistentFlags().BoolVar(&o.asJSON, "json", false, "one JSON value")
	list := o.command("list", "All models, oldest first, and which are in use", cobra.NoArgs, (*options).list)
	client.AddAt(list, &o.at)
	show := o.command("show VERSION", "A model's card: where it comes from, and how good it was", client.Exactly("VERSION"), (*options).show)
	compare := o.command("compare VERSION [OTHER]", "Figures of two models on their newest windows; the other one is what is in use", cobra.RangeArgs(1, 2), (*options).compare)
	promote := o.command("promote VERSION", "Put a model into use, from the next record on", client.Exactly("VERSION"), (*options).promote)
	rollback := o.command("rollback KIND", "Put the model into use that was before, or priors: success, conflict or duration", client.Exactly("KIND"), nil)
	priors := rollback.Flags().Bool("priors", false, "give the priors back, whatever was in use before")
	rollback.RunE = o.run(func(o *options, ctx context.Context, log journal.Log, reg *registry.Registry, args []string, out io.Writer) error {
		return o.rollback(ctx, log, reg, args[0], *priors, out)
	})
	for _, w := range []*cobra.Command{promote, rollback} {
		w.Flags().StringVar(&o.who, "who", client.Person(), "who asks")
		w.Flags().StringVar(&o.why, "why", "", "reason, for the record")
	}
	c.AddCommand(list, show, compare, promote, rollback)
	return c
}

type action func(o *options, ctx context.Context, log journal.Log, reg *registry.Registry, args []string, out io.Writer) error

func (o *options) command(use, short string, args cobra.PositionalArgs, do action) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: args, RunE: o.run(do)}
}

// run opens the log and reads the models of the queue.
func (o *options) run(do action) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := o.findQueue(); err != nil {
			return err
		}
		log, closeLog, err := o.source.Open(cmd.Context(), o.logger)
		if err != nil {
			return err
		}
		defer closeLog()
		reg, err := registry.Read(cmd.Context(), log, o.queue)
		if err != nil {
			return err
		}
		return do(o, cmd.Context(), log, reg, args, cmd.OutOrStdout())
	}
}

// findQueue takes the configuration's only queue if none is named. It refuses a name that the configuration lacks, if that is where the
// log was found.
func (o *options) findQueue() error {
	c, err := o.source.Load(o.source.Config)
	switch {
	case o.queue == "" && (err != nil || len(c.Queues) != 1):
		return errors.New("which queue? give --queue NAME")
	case o.queue == "":
		o.queue = c.QueueNames()[0]
	case err == nil && len(c.Queues) > 0 && o.source.Data == "" && len(o.source.Brokers) == 0 && !slices.Contains(c.QueueNames(), o.queue):
		return fmt.Errorf("%s has no queue %q; it has: %s", o.source.Config, o.queue, strings.Join(c.QueueNames(), ", "))
	}
	return nil
}

// row is a line of the list.
type row struct {
	Kind    string    `json:"kind"`
	Version string    `json:"version,omitempty"`
	What    string    `json:"what"`
	At      time.Time `json:"at"`
	Who     string    `json:"who,omitempty"`
	Why     string    `json:"why,omitempty"`
	InUse   bool      `json:"in_use"`
	// Usable is set if the model could be put into use; Trouble says why it could not.
	Usable  bool   `json:"usable"`
	Trouble string `json:"trouble,omitempty"`
}

func (o *options) list(_ context.Context, _ journal.Log, reg *registry.Registry, _ []string, out io.Writer) error {
	at, err := client.ParseAt(o.at)
	if err != nil {
		return err
	}
	if o.at != "" {
		reg = reg.At(at.UnixMicro())
	}
	rows := make([]row, 0, len(reg.Entries))
	for _, e := range reg.Entries {
		r := row{Kind: prediction.KindName(e.Kind), Version: e.Model.Version, What: e.Event, At: time.UnixMicro(e.At).UTC(), Who: e.Who, Why: e.Why}
		r.InUse = e.Event == registry.Promoted && reg.InUse(e.Kind) == e.Model
		if e.HasPredictor() {
			if _, err := prediction.Open(e.Model); err != nil {
				r.Trouble = err.Error()
			}
			r.Usable = r.Trouble == ""
		}
		rows = append(rows, r)
	}
	if o.asJSON {
		return json.NewEncoder(out).Encode(rows)
	}
	if len(rows) == 0 {
		fmt.Fprintf(out, "queue %s has no models; priors predict\n", client.Plain(o.queue))
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KIND\tVERSION\tAT\tWHAT\tWHO\tWHY")
	for _, r := range rows {
		what := r.What
		if r.InUse {
			what = "IN USE"
		}
		if r.Trouble != "" {
			what += ", " + r.Trouble
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Kind, client.Plain(prediction.ShortVersion(r.Version)), r.At.Format("2006-01-02 15:04"), client.Plain(what), client.Plain(r.Who), client.Plain(r.Why))
	}
	return w.Flush()
}

func (o *options) show(_ context.Context, _ journal.Log, reg *registry.Registry, args []string, out io.Writer) error {
	e, err := reg.Find(args[0])
	if err != nil {
		return err
	}
	if o.asJSON {
		m := proto.CloneOf(e.Model)
		m.Predictor, m.Calibration = nil, nil
		text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%s\n", text)
		return err
	}
	WriteCard(out, e.Model)
	return nil
}

// WriteCard prints a model's card.
func WriteCard(out io.Writer, m *eventsv1.Model) {
	c := m.GetCard()
	fmt.Fprintf(out, "%s-%s\n", prediction.KindName(m.GetKind()), client.Plain(m.GetVersion()))
	fmt.Fprintf(out, "  %s; trained %s by landfall %s\n", client.Plain(c.GetAlgorithm()), day(c.GetTrainedUs()), client.Plain(c.GetTrainedBy()))
	fmt.Fprintf(out, "  on %d rows from %s to %s, chosen by %d of them, judged on the newest %d\n", c.GetTrainingRows(), day(c.GetDataFromUs()), day(c.GetDataUntilUs()), c.GetChoosingRows(), c.GetNewestRows())
	fmt.Fprintf(out, "  %s\n", client.Plain(c.GetVerdict()))
	writeFigures(out, []string{""}, []*eventsv1.Model{m})
	for _, w := range c.GetWeights()[:min(len(c.GetWeights()), 15)] {
		fmt.Fprintf(out, "  %+.3f  %s\n", w.Weight, client.Plain(w.Feature))
	}
}

func day(us int64) string { return time.UnixMicro(us).UTC().Format("2006-01-02 15:04") }

// writeFigures prints the figures of cards side by side.
func writeFigures(out io.Writer, titles []string, models []*eventsv1.Model) {
	type key struct{ name, of string }
	values, seen := map[key][]string{}, []key{}
	for i, m := range models {
		for _, f := range m.GetCard().GetFigures() {
			k := key{f.Name, f.Of}
			if values[k] == nil {
				values[k] = make([]string, len(models))
				seen = append(seen, k)
			}
			values[k][i] = fmt.Sprintf("%.4f", f.Value)
		}
	}
	slices.SortFunc(seen, func(a, b key) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.of, b.of)) })
	w := tabwriter.NewWriter(out, 2, 0, 2, ' ', 0)
	if len(titles) > 1 {
		fmt.Fprint(w, "  FIGURE\tOF")
		for _, t := range titles {
			fmt.Fprintf(w, "\t%s", t)
		}
		fmt.Fprintln(w)
	}
	for _, k := range seen {
		fmt.Fprintf(w, "  %s\t%s", client.Plain(k.name), client.Plain(k.of))
		for _, v := range values[k] {
			fmt.Fprintf(w, "\t%s", cmp.Or(v, "-"))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
}

func (o *options) compare(_ context.Context, _ journal.Log, reg *registry.Registry, args []string, out io.Writer) error {
	e, err := reg.Find(args[0])
	if err != nil {
		return err
	}
	other := reg.InUse(e.Kind)
	if len(args) == 2 {
		with, err := reg.Find(args[1])
		if err != nil {
			return err
		}
		other = with.Model
	}
	if other == nil {
		return fmt.Errorf("no model of %s is in use; name the other one (landfall models list)", prediction.KindName(e.Kind))
	}
	if other.Kind != e.Kind {
		return fmt.Errorf("%s predicts %s, %s predicts %s: they cannot be compared", args[0], prediction.KindName(e.Kind), prediction.ShortVersion(other.Version), prediction.KindName(other.Kind))
	}
	models := []*eventsv1.Model{e.Model, other}
	if o.asJSON {
		list := []json.RawMessage{}
		for _, m := range models {
			text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(&eventsv1.Model{Kind: m.Kind, Version: m.Version, Card: m.Card})
			if err != nil {
				return err
			}
			list = append(list, text)
		}
		return json.NewEncoder(out).Encode(list)
	}
	fmt.Fprintln(out, "Each on its own newest window; as_predicted, rolling and in_use are of that window too.")
	writeFigures(out, []string{prediction.ShortVersion(e.Model.Version), prediction.ShortVersion(other.Version)}, models)
	return nil
}

func (o *options) promote(ctx context.Context, log journal.Log, reg *registry.Registry, args []string, out io.Writer) error {
	e, err := reg.Find(args[0])
	if err != nil {
		return err
	}
	if !e.HasPredictor() {
		return fmt.Errorf("of %s only the card is kept: train it again (landfall train queue --promote)", args[0])
	}
	if _, err := prediction.Open(e.Model); err != nil {
		return fmt.Errorf("%s cannot be used: %w", args[0], err)
	}
	return o.put(ctx, log, e.Model, cmp.Or(o.why, "by hand"), out)
}

func (o *options) put(ctx context.Context, log journal.Log, m *eventsv1.Model, why string, out io.Writer) error {
	return o.write(ctx, log, &eventsv1.ModelPromoted{Model: m, Who: o.who, Why: why, StampUs: time.Now().UnixMicro(), Actor: client.Operator("landfall models promote")},
		change{prediction.KindName(m.Kind), m.Version}, out)
}

// change is what promote and rollback print.
type change struct {
	Kind string `json:"kind"`
	// InUse is the version that predicts from now on, empty for priors.
	InUse string `json:"in_use"`
}

func (o *options) write(ctx context.Context, log journal.Log, m proto.Message, c change, out io.Writer) error {
	if err := registry.Publish(ctx, log, events.ServiceTrainer, "models", o.queue, m); err != nil {
		return err
	}
	if o.asJSON {
		return json.NewEncoder(out).Encode(c)
	}
	by := "priors"
	if c.InUse != "" {
		by = c.Kind + "-" + prediction.ShortVersion(c.InUse)
	}
	fmt.Fprintf(out, "%s of queue %s is predicted by %s from now on\n", c.Kind, client.Plain(o.queue), by)
	return nil
}

func (o *options) rollback(ctx context.Context, log journal.Log, reg *registry.Registry, name string, priors bool, out io.Writer) error {
	kind := prediction.KindOf(name)
	if kind == eventsv1.ModelKind_MODEL_KIND_UNSPECIFIED {
		return fmt.Errorf("%q is no kind of model; it is success, conflict or duration", name)
	}
	now := reg.InUse(kind)
	if now == nil {
		return fmt.Errorf("no model of %s is in use; priors predict already", name)
	}
	if before := reg.Previous(kind); before != nil && !priors {
		return o.put(ctx, log, before, cmp.Or(o.why, "rolled back from "+prediction.ShortVersion(now.Version)), out)
	}
	return o.write(ctx, log, &eventsv1.ModelRolledBack{Kind: kind, Version: now.Version, Who: o.who, Why: o.why, StampUs: time.Now().UnixMicro(), Actor: client.Operator("landfall models rollback")}, change{Kind: name}, out)
}
