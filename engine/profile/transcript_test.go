package profile_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"landfall.build/engine/prediction/predictiontest"
	eventsv1 "landfall.build/events/v1"
)

// TestTranscripts plays the commands of testdata. Each prints what the profiles said because of it:
//
//	change NAME affects=TARGET,…
//	build NAME of=CHANGE [on=CHANGE,…] [passed=TARGET,…] [failed=TARGET,…]   each step takes 30 s
//	land NAME, reject NAME
//	promote success|conflict|duration|absurd, rollback success|conflict|duration
//
// go test ./engine/profile -run TestTranscripts -rewrite writes them again.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		l := newLine(t)
		mainline := 0
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			from := len(l.written)
			name := ""
			if len(d.CmdArgs) > 0 {
				name = d.CmdArgs[0].Key
			}
			list := func(key string) []string {
				for _, a := range d.CmdArgs {
					if a.Key == key {
						return a.Vals
					}
				}
				return nil
			}
			kinds := map[string]eventsv1.ModelKind{"success": 1, "conflict": 2, "duration": 3}
			switch d.Cmd {
			case "change":
				l.change(name, list("affects")...)
			case "build":
				base, of, on := fmt.Sprint("m", mainline), list("of")[0], list("on")
				passed, failed := list("passed"), list("failed")
				p := &eventsv1.BuildPrepared{Build: name, Change: at(of), Base: base, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}
				for _, a := range on {
					p.Assumed = append(p.Assumed, at(a))
				}
				tree := strings.Join(append(slices.Clone(on), of), "+")
				for _, target := range append(slices.Clone(passed), failed...) {
					p.Versions = append(p.Versions, &eventsv1.TargetVersion{Target: target, Hash: target + "{" + base + "+" + tree + "}", Part: 1})
				}
				l.say(p)
				for i, v := range p.Versions {
					outcome := eventsv1.StepOutcome_STEP_OUTCOME_PASSED
					if i >= len(passed) {
						outcome = eventsv1.StepOutcome_STEP_OUTCOME_FAILED
					}
					l.say(&eventsv1.StepFinished{Target: v.Target, Hash: v.Hash, Attempt: 1, Outcome: outcome, Build: name, StartedUs: l.stamp - 30_000_000, FinishedUs: l.stamp})
				}
			case "land":
				base, head := fmt.Sprint("m", mainline), fmt.Sprint("m", mainline+1)
				mainline++
				l.say(&eventsv1.LandIntended{Change: at(name), Base: base, Commits: []string{head}, Tree: "t" + head})
				l.say(&eventsv1.ChangeLanded{Change: at(name), Base: base, Commits: []string{head}, Tree: "t" + head})
			case "reject":
				l.say(&eventsv1.ChangeRejected{Change: at(name), Base: fmt.Sprint("m", mainline), Reason: &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_STEP_FAILED}})
			case "promote":
				l.promote(map[string]func() *eventsv1.Model{
					"success":  func() *eventsv1.Model { return predictiontest.Success(t, 5) },
					"conflict": func() *eventsv1.Model { return predictiontest.Conflict(t, 5) },
					"duration": func() *eventsv1.Model { return predictiontest.Duration(t, 1, 1) },
					"absurd":   func() *eventsv1.Model { return predictiontest.Duration(t, 1, 1e9) },
				}[name]())
			case "rollback":
				l.say(&eventsv1.ModelRolledBack{Kind: kinds[name]})
			default:
				d.Fatalf(t, "there is no command %s", d.Cmd)
			}
			return said(l.written[from:])
		})
	})
}

// version is that of a model in the source of a prediction. Another kind of processor may round differently, and train another model.
var version = regexp.MustCompile(`-[0-9a-f]{12}`)

// said prints the predictions of some profiles, of each change and pair the last.
func said(profiles []*eventsv1.Profile) string {
	lines := map[string]string{}
	var observed, models []string
	for _, p := range profiles {
		for _, q := range p.GetPredictions() {
			lines[q.Change.Change] = fmt.Sprintf("%s passes with %.3f (%s), takes %.0f s ± %.0f (%s)\n",
				q.Change.Change, q.Success, q.SuccessSource, q.DurationMeanUs/1e6, q.DurationStdUs/1e6, q.DurationSource)
		}
		for _, q := range p.GetPairs() {
			lines[q.Behind.Change+" "+q.Ahead.Change] = fmt.Sprintf("  %s breaks on %s with %.3f (%s)\n", q.Behind.Change, q.Ahead.Change, q.Conflict, q.Source)
		}
		for _, o := range p.GetObserved() {
			observed = append(observed, fmt.Sprintf("observed: %s on %s, conflict %v\n", o.Behind.Change, o.Ahead.Change, o.Conflict))
		}
		for _, m := range p.GetModels() {
			what := strings.ToLower(strings.TrimPrefix(m.Kind.String(), "MODEL_KIND_"))
			switch {
			case m.Version == "":
				what += ": priors predict"
			case m.Trouble != "":
				trouble, _, _ := strings.Cut(m.Trouble, ":")
				what += ": the model is out of use: " + trouble
			default:
				what += ": a model predicts"
			}
			models = append(models, what+"\n")
		}
	}
	var keys []string
	for k := range lines {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var out strings.Builder
	for _, k := range keys {
		out.WriteString(lines[k])
	}
	out.WriteString(strings.Join(observed, ""))
	out.WriteString(strings.Join(models, ""))
	if out.Len() == 0 {
		return "nothing changes\n"
	}
	return version.ReplaceAllString(out.String(), "-…")
}
