package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	"landfall.build/platform/journal"
	"landfall.build/tools/audit"
	"landfall.build/tools/replay/recompute"
)

// Differs is the error of a verification that found differences. It has been told when it is returned.
type Differs struct{ Records int64 }

func (e Differs) Error() string {
	return fmt.Sprintf("%d records are not what this code says", e.Records)
}

// ExitCode is the command's exit code.
func (e Differs) ExitCode() int { return 1 }

// quietly is how long a verification may take before it shows how far it is.
const quietly = time.Second

// Verification says how a log is held against the code.
type Verification struct {
	// Version is what this code calls itself.
	Version string
	// AllVersions compares the records of other versions too.
	AllVersions bool
	JSON        bool
}

// Run verifies a log and tells what was found. It returns Differs if anything differs, and an error if nothing
// could be compared though there are records.
func (v Verification) Run(ctx context.Context, log journal.Log, out, progress io.Writer) error {
	meter := audit.NewMeter(progress)
	meter.What, meter.Of = "replay", "records"
	begun := time.Now()
	r, err := recompute.Verify(ctx, recompute.Options{
		Log: log, Version: v.Version, AllVersions: v.AllVersions,
		Progress: func(done, total int64) {
			if time.Since(begun) < quietly {
				return
			}
			left := time.Duration(float64(time.Since(begun)) * float64(total-done) / float64(max(1, done)))
			meter.Show(audit.Progress{Done: int(done), Total: int(total), Remaining: left})
		},
	})
	meter.End()
	if err != nil {
		return err
	}
	took := time.Since(begun)
	if v.JSON {
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(summaryOf(r, took)); err != nil {
			return err
		}
	} else if err := writeReport(out, r, took); err != nil {
		return err
	}
	switch {
	case r.Differences() > 0:
		return Differs{r.Differences()}
	case r.Compared() == 0 && len(r.Others()) > 0:
		return fmt.Errorf("nothing was compared: all records are of other versions than this one, %q; --all-versions compares them all the same", r.Version)
	case r.Compared() == 0:
		return nothingCompared(ctx, log)
	}
	return nil
}

// nothingCompared says that a log in which something stands has shown nothing; of an empty one nothing was to be
// shown.
func nothingCompared(ctx context.Context, log journal.Log) error {
	records := int64(0)
	for _, topic := range events.Topics() {
		for p := range log.Partitions() {
			end, err := log.End(ctx, topic.Name, p)
			if err != nil {
				return err
			}
			records += end
		}
	}
	if records == 0 {
		return nil
	}
	return fmt.Errorf("nothing was compared: %w, among %d records in all", ErrNothing, records)
}

// ErrNothing says that no record was compared, as the cores have not written any.
var ErrNothing = errors.New("the log holds nothing that could be compared")

// VerifyQuietly verifies a log of a program's own and returns what differs, or ErrNothing: nothing is told but to
// the logger. The code that wrote the log is taken to be this one. Tests of whole pipelines use replaytest.AtEnd.
func VerifyQuietly(ctx context.Context, log journal.Log, logger *slog.Logger) error {
	return verifyQuietly(ctx, recompute.Options{Log: log, AllVersions: true}, logger)
}

// VerifyVersion is VerifyQuietly of a log that several versions wrote: it compares what this one has written.
func VerifyVersion(ctx context.Context, log journal.Log, version string, logger *slog.Logger) error {
	return verifyQuietly(ctx, recompute.Options{Log: log, Version: version}, logger)
}

func verifyQuietly(ctx context.Context, o recompute.Options, logger *slog.Logger) error {
	r, err := recompute.Verify(ctx, o)
	if err != nil {
		return err
	}
	if d := r.First(); d != nil {
		var text strings.Builder
		writeDifference(&text, d)
		return fmt.Errorf("%w\n%s", r.Err(), text.String())
	}
	if r.Compared() == 0 {
		return ErrNothing
	}
	logger.Info("the log is what the cores say", "compared", r.Compared())
	return nil
}

func writeReport(out io.Writer, r *recompute.Report, took time.Duration) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "service\trecords\tcompared\tidentical\tdifferent\tmissing\tnot counted\tother versions\tgiven\tsilences\t")
	records := int64(0)
	for _, s := range r.Services {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", s.Service, s.Records, s.Compared, s.Identical, s.Different, s.Missing, s.NotCounted, sum(s.Others), s.Given, s.Silent)
		records += s.Records
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, version := range slices.Sorted(maps.Keys(r.Others())) {
		fmt.Fprintf(out, "not compared: %d records of version %s; this is %s\n", r.Others()[version], named(version), named(r.Version))
	}
	for _, s := range r.Services {
		if s.Torn > 0 {
			fmt.Fprintf(out, "%s: %d offsets at the end of what it reads and writes hold no whole record\n", s.Service, s.Torn)
		}
	}
	rate := float64(r.Compared()) / max(took.Seconds(), 1e-6)
	fmt.Fprintf(out, "%d records compared in %s (%.0f a second)", r.Compared(), took.Round(time.Millisecond), rate)
	switch d := r.First(); {
	case d != nil:
		fmt.Fprintf(out, ": %d are not what this code says. The first:\n\n", r.Differences())
		writeDifference(out, d)
		if unreleased(d.Version) {
			fmt.Fprintf(out, "\nThis code and the one that wrote it both call themselves %s, as any build does that is not of one commit: they may differ.\n", named(d.Version))
		}
	case r.Compared() > 0:
		fmt.Fprintln(out, ": every one is what this code says, byte for byte.")
	case records == 0:
		fmt.Fprintln(out, ": the log holds no derived records.")
	default:
		fmt.Fprintln(out, ".")
	}
	return nil
}

// unreleased versions name more than one state of the code.
func unreleased(version string) bool {
	return version == "" || version == "development" || strings.HasSuffix(version, "-dirty")
}

func named(version string) string {
	if version == "" {
		return "(without a name)"
	}
	return version
}

func sum(of map[string]int64) (n int64) {
	for _, v := range of {
		n += v
	}
	return n
}

const (
	// shownFields is how many fields of a difference people are shown.
	shownFields = 20
	// shownCauses and shownCause bound the inputs that people are shown.
	shownCauses = 8
	shownCause  = 2000
)

// writeDifference shows one difference: where, what caused it, and each field that is not the same.
func writeDifference(out io.Writer, d *recompute.Difference) {
	fmt.Fprintf(out, "%s (version %s)\n", d, named(d.Version))
	for i, e := range d.Causes {
		if i == shownCauses {
			fmt.Fprintf(out, "  … and %d more inputs\n", len(d.Causes)-i)
			break
		}
		fmt.Fprintf(out, "  input    %s/%d/%d  %s  %s of %s\n           %s\n", e.Topic, e.Partition, e.Offset, e.Time.UTC().Format(time.RFC3339Nano),
			typeOf(e.Message), e.Source, clip(string(body(e.Message)), shownCause))
	}
	switch {
	case d.Written == nil:
		fmt.Fprintf(out, "  computed %s\n", clip(string(body(d.Computed)), shownCause))
		return
	case d.Computed == nil:
		fmt.Fprintf(out, "  written  %s\n", clip(string(body(d.Written)), shownCause))
		return
	}
	fields := Fields(d.Written, d.Computed)
	if len(fields) == 0 {
		fmt.Fprintln(out, "  every field is the same, and the bytes are not: fields that this version does not know, or a zero with a sign")
	}
	for i, f := range fields {
		if i == shownFields {
			fmt.Fprintf(out, "  … and %d more fields; --json has them all\n", len(fields)-i)
			break
		}
		fmt.Fprintf(out, "  %s\n    written:  %s\n    computed: %s\n", f.Path, orNothing(f.Written), orNothing(f.Computed))
	}
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}

func typeOf(m proto.Message) string {
	if m == nil {
		return "record"
	}
	return strings.TrimPrefix(events.TypeOf(m), "landfall.events.v1.")
}

// body is a message as JSON.
func body(m proto.Message) json.RawMessage {
	if m == nil {
		return nil
	}
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		text, _ = json.Marshal(err.Error())
	}
	return text
}
