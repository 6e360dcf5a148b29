// Package demo is `landfall demo`: from nothing to a landed, audited mainline, on real parts. It makes the
// sample monorepo, serves it from a bare repository, starts the queue, has eight people land some 40 changes
// at once, and then proves, without the queue's evidence, that every commit of the mainline is green.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"

	"landfall.build/platform/buildgraph"
	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
	"landfall.build/services/gateway/view"
	"landfall.build/tools/audit"
	"landfall.build/tools/demo/display"
	"landfall.build/tools/demo/expectation"
	"landfall.build/tools/demo/plainmerge"
	"landfall.build/tools/demo/sample"
	"landfall.build/tools/demo/scenario"
	"landfall.build/tools/demo/tally"
)

// demo is one run.
type demo struct {
	place     place
	seed      uint64
	processes bool
	// binary runs the processes; this program if "".
	binary string
	// brokers of a log that is there and empty; a broker of the demo's own if none are named.
	brokers []string
	// only these changes of the sample, if any are named.
	only     []string
	version  string
	logger   *slog.Logger
	live     *display.Live
	progress io.Writer
	sample   *sample.Repository
}

// finding is all that a run found out.
type finding struct {
	result *expectation.Result
	tally  tally.Tally
	audit  *audit.Report
	chain  *plainmerge.Chain
	damage *plainmerge.Damage
}

// good reports whether every commit is green and every outcome as expected.
func (f *finding) good() bool {
	return len(f.result.Problems) == 0 && len(f.audit.Commits) > 0 && f.audit.Green() == len(f.audit.Commits)
}

// run does everything. An error is of something that could not be done at all.
func (d *demo) run(ctx context.Context) (*finding, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return nil, errors.New("the demo needs git 2.38 or newer: install the package git")
	}
	cache, err := sample.BuildCache(ctx)
	if err != nil {
		return nil, err
	}
	d.live.Phase("compiling the sample monorepo once (the first time on a machine, the standard library too: a minute or two)")
	if err := sample.Warm(ctx, cache); err != nil {
		return nil, err
	}
	d.live.Phase("making the repository")
	if d.sample, err = sample.Make(ctx, d.place.repository()); err != nil {
		return nil, err
	}
	if len(d.only) > 0 {
		d.sample.Restrict(d.only)
	}
	d.live.Expect(len(d.sample.Changes))
	clone, err := gitrepo.Open(ctx, gitrepo.Options{Remote: d.place.repository(), Dir: d.place.clone(), Log: d.logger})
	if err != nil {
		return nil, err
	}
	defer clone.Close()
	f := &finding{}
	changes, err := d.land(ctx, cache, clone, f)
	if err != nil {
		return nil, err
	}
	return f, d.prove(ctx, clone, changes, f)
}

// land plays the scenario on a queue of its own and returns the changes as they ended.
func (d *demo) land(ctx context.Context, cache string, clone *gitrepo.Repo, f *finding) (changes map[string]view.Change, err error) {
	d.live.Phase("starting the queue")
	r, err := d.start(ctx, cache)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closing := r.Close(); closing != nil && err == nil {
			err = fmt.Errorf("ending the queue: %w", closing)
		}
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case failure := <-r.Failed():
			cancel(failure)
		case <-ctx.Done():
		}
	}()
	d.live.Phase(fmt.Sprintf("%d changes (seed %d); the queue is at %s", len(d.sample.Changes), d.seed, r.URL()))
	play := &scenario.Scenario{
		Server: r.URL(), Queue: queue, Brokers: r.Brokers(), Secret: r.Secret, Sample: d.sample, Clone: clone, Seed: d.seed, Logger: d.logger,
		Seen: d.live.Seen, Note: d.live.Note,
		Middle: func(ctx context.Context) error { return r.Disturb(ctx, d.live.Note) },
	}
	changes, err = play.Run(ctx)
	d.live.Pause()
	if err != nil {
		return nil, err
	}
	log, err := d.openLog(ctx, r)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	f.tally, err = tally.Count(ctx, log, queue)
	return changes, err
}

// prove checks the outcome, audits the mainline, and finds out what plain merging would have done.
func (d *demo) prove(ctx context.Context, clone *gitrepo.Repo, changes map[string]view.Change, f *finding) error {
	commits, err := audit.Range(ctx, clone, sample.Branch, "", "")
	if err != nil {
		return err
	}
	mainline, err := landed(ctx, clone, d.sample.Head, commits)
	if err != nil {
		return err
	}
	f.result = expectation.Check(d.sample, changes, mainline)
	d.live.Phase(fmt.Sprintf("auditing the mainline: %d commits, built again without the queue's evidence", len(commits)))
	config, err := configuration.Load(d.place.configFile(), configuration.Defaults{Workers: runtime.NumCPU(), Path: stepPath()})
	if err != nil {
		return err
	}
	q := config.Queues[queue]
	meter := audit.NewMeter(d.progress)
	show := meter.Show
	auditor, err := audit.New(audit.Options{
		Repo: clone, Queue: q.Name, Analysis: q.Analysis, Steps: q.Steps, Workers: runtime.NumCPU() + 1, Dir: d.place.audit(), Logger: d.logger, Progress: func(p audit.Progress) { show(p) },
	})
	if err != nil {
		return err
	}
	defer func() {
		auditor.Close()
		os.RemoveAll(d.place.audit())
	}()
	f.audit, err = auditor.Judge(ctx, commits)
	meter.End()
	if err != nil {
		return err
	}
	d.live.Phase("merging the same changes plainly, to see what that breaks")
	if err := clone.Fetch(ctx, gitrepo.Wanted{Commits: d.sample.Prepared()}); err != nil {
		return err
	}
	if f.chain, err = plainmerge.Merge(ctx, clone, buildgraph.NewLoader(q, nil), d.sample.Head, requests(d.sample, changes)); err != nil {
		return err
	}
	// That targets are red is what this is about, and no alarm.
	meter.What, show = "plain merging", func(p audit.Progress) { p.Bad = 0; meter.Show(p) }
	f.damage, err = plainmerge.Assess(ctx, auditor, f.chain)
	meter.End()
	return err
}

// landed is the mainline after the sample's own head.
func landed(ctx context.Context, clone *gitrepo.Repo, head string, commits []string) (expectation.Mainline, error) {
	var m expectation.Mainline
	for i, id := range commits {
		if id == head {
			m.Commits = commits[i+1:]
			break
		}
	}
	infos, err := clone.CommitInfos(ctx, m.Commits)
	for _, info := range infos {
		m.Titles = append(m.Titles, audit.Subject(info.Message))
	}
	return m, err
}
