package audit

import (
	"cmp"
	"context"
	"slices"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph"
)

// span is the audited commits that have a version, which is run at the last of them.
type span struct {
	task    *task
	commits []int
	// runs are what would run it at each of the commits.
	runs []task
}

func (s *span) add(commit int, part buildgraph.Part, t targets.Target) {
	run := task{tree: part.Tree, leaving: part.Graph.Leaving(), target: t, finding: s.task.finding}
	s.commits, s.runs = append(s.commits, commit), append(s.runs, run)
	*s.task = run
}

// sinceWhen looks at each version that is not green at the last of its commits, whether it was at the first, and if so finds the commit
// since which it is not. The commits before that have a green finding of it. One that passes and fails at one commit is flaky.
func (a *Auditor) sinceWhen(ctx context.Context, spans map[version]*span, parts [][]*Finding, report *Report) error {
	var doubtful []*span
	for _, s := range spans {
		if s.task.finding.Verdict != Green && len(s.commits) > 1 {
			doubtful = append(doubtful, s)
		}
	}
	slices.SortFunc(doubtful, func(x, y *span) int {
		return cmp.Or(cmp.Compare(x.commits[0], y.commits[0]), cmp.Compare(x.task.finding.Target, y.task.finding.Target))
	})
	firsts := &agenda{}
	at := make([]*Finding, len(doubtful))
	for i, s := range doubtful {
		at[i] = s.runAt(firsts, 0)
	}
	if err := a.run(ctx, firsts, report); err != nil {
		return err
	}
	for i, s := range doubtful {
		if at[i].Verdict != Green {
			continue
		}
		passes, fails := 0, len(s.commits)-1
		for fails-passes > 1 {
			next, middle := &agenda{}, (passes+fails)/2
			f := s.runAt(next, middle)
			if err := a.run(ctx, next, report); err != nil {
				return err
			}
			if f.Verdict == Green {
				passes = middle
			} else {
				fails = middle
			}
		}
		red := s.task.finding
		flaky, err := a.flaky(ctx, s, passes, fails, report)
		if err != nil {
			return err
		}
		if flaky {
			red.Verdict, red.Outcome, red.Command, red.Reason, red.Lines, red.Tail = Green, at[i].Outcome, "", "", nil, ""
			report.Flaky = append(report.Flaky, red)
			continue
		}
		red.PassedAt = report.Commits[s.commits[passes]].ID
		for _, commit := range s.commits[:fails] {
			parts[commit][slices.Index(parts[commit], red)] = at[i]
		}
	}
	return nil
}

// repeats is how often a version runs again at the commit where it passes and at the one where it fails.
const repeats = 2

// flaky reports whether a version fails where it has passed, or passes where it has failed: then no file makes the difference.
func (a *Auditor) flaky(ctx context.Context, s *span, passes, fails int, report *Report) (bool, error) {
	for range repeats {
		again := &agenda{}
		failed, passed := s.runAt(again, fails), s.runAt(again, passes)
		if err := a.run(ctx, again, report); err != nil {
			return false, err
		}
		if failed.Verdict == Green || passed.Verdict == Red || passed.Verdict == Green && passed.Runs > 1 {
			return true, nil
		}
	}
	return false, nil
}

// runAt puts the version on an agenda, to be run at one of its commits, and returns what the finding will be.
func (s *span) runAt(wanted *agenda, place int) *Finding {
	t := s.runs[place]
	t.finding = &Finding{Target: t.finding.Target, Hash: t.finding.Hash, Verdict: Unproven, excused: true} // it is counted already
	wanted.add(&t)
	return t.finding
}
