package kills

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/journal/kafka"
	"landfall.build/services/gateway/view"
	"landfall.build/tools/audit"
	"landfall.build/tools/client"
	"landfall.build/tools/demo/expectation"
	"landfall.build/tools/demo/sample"
	"landfall.build/tools/demo/scenario"
	"landfall.build/tools/embedded/broker"
	"landfall.build/tools/proof/kills/fleet"
	"landfall.build/tools/proof/kills/plan"
	"landfall.build/tools/proof/kills/verdict"
	"landfall.build/tools/replay"
)

// round lands the demo's changes once, on processes of its own, while they are being killed.
type round struct {
	run    *run
	number int
	place  place
	seed   uint64
	// enough is how many kills there are to be at most.
	enough int64
	counts counts
	logger *slog.Logger
	log    verdict.Log
	// problems are sentences about what is not as it has to be.
	problems []string

	mu   sync.Mutex
	last map[string]view.Update
}

// stillness is how long nothing may happen: on a busy machine a cluster of Kafka needs minutes to find itself
// again.
const stillness = 5 * time.Minute

// starting is how long all processes may take until the gateway answers.
const starting = 2 * time.Minute

// play plays the round. The error says that it could not be played or judged.
func (r *round) play(ctx context.Context) (verdict.Line, error) {
	for _, dir := range []string{r.place.dir, r.place.logs()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return verdict.Line{}, err
		}
	}
	s, err := sample.Make(ctx, r.place.repository())
	if err != nil {
		return verdict.Line{}, err
	}
	if r.run.changes > 0 {
		s.Fewer(r.run.changes)
	}
	clone, err := gitrepo.Open(ctx, gitrepo.Options{Remote: r.place.repository(), Dir: r.place.clone(), Log: r.logger})
	if err != nil {
		return verdict.Line{}, err
	}
	defer clone.Close()
	changes, config, err := r.land(ctx, s, clone)
	if errors.Is(err, scenario.ErrUndecided) {
		r.problems = append(r.problems, err.Error())
		changes = r.pending(s)
	} else if err != nil {
		return verdict.Line{}, err
	}
	line, err := r.judge(ctx, s, clone, changes, config)
	line.Schedules, line.Crashes = 1, int(r.counts.kills.Load())
	line.StaleWrites, line.GuardRefusals = r.log.Stale, r.log.Refusals
	return line, err
}

// land starts everything, plays the scenario under torment, and reads the log.
func (r *round) land(ctx context.Context, s *sample.Repository, clone *gitrepo.Repo) (changes map[string]view.Change, config *configuration.Configuration, err error) {
	b, err := r.brokers(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, instance := range instances {
		listen, err := fleet.FreeAddress()
		if err != nil {
			return nil, nil, err
		}
		c, err := r.place.configure(instance, r.run.cache, b.addresses, listen)
		if err != nil {
			return nil, nil, err
		}
		if config == nil {
			config = c
		}
	}
	f := fleet.New(r.place.logs(), func(text string) { r.logger.Warn(text) })
	defer func() {
		problems, byItself := f.Problems()
		for _, p := range problems {
			r.problems = append(r.problems, p.Error())
		}
		r.logger.Info("processes that ended by themselves", "count", byItself)
		if closing := f.Close(b.names...); closing != nil {
			r.logger.Warn("not every process ended when it was asked to", "error", closing)
		}
	}()
	if err := r.launch(ctx, f, b); err != nil {
		return nil, nil, err
	}
	server := "http://" + config.Gateway.Listen
	if err := awaitGateway(ctx, server); err != nil {
		return nil, nil, fmt.Errorf("%w; the processes' logs are in %s", err, r.place.logs())
	}
	changes, err = r.torment(ctx, f, b, &scenario.Scenario{
		Server: server, Queue: queue, Brokers: b.addresses, Secret: r.secret(b), Sample: s, Clone: clone, Seed: r.seed, Logger: r.logger,
		Seen: r.see, Stillness: stillness,
	})
	if err != nil {
		short, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if unread := r.readLog(short, b); unread != nil {
			r.logger.Warn("the log cannot be counted", "error", unread)
		}
		// What stands still shows in the stacks of who ought to move it.
		f.Dump()
		return nil, config, err
	}
	return changes, config, r.readLog(ctx, b)
}

func (r *round) brokers(ctx context.Context) (*brokers, error) {
	if r.run.broker == apache {
		return apacheKafka(ctx, r.run.script, r.place.kafka())
	}
	first, _ := r.releases()
	return embeddedBroker(first.binary, r.place.configFile(instances[0]))
}

// secret returns the file with what the brokers ask for.
func (r *round) secret(b *brokers) func() string {
	return func() string { return broker.SecretIn(filepath.Join(r.place.data(), "broker"), b.addresses) }
}

func (r *round) launch(ctx context.Context, f *fleet.Fleet, b *brokers) error {
	if err := b.launch(f); err != nil {
		return err
	}
	for _, address := range b.addresses {
		if err := awaitAddress(ctx, address); err != nil {
			return err
		}
	}
	first, _ := r.releases()
	for name, argv := range r.members(first) {
		if err := f.Launch(name, argv...); err != nil {
			return err
		}
	}
	return nil
}

func awaitGateway(ctx context.Context, server string) error {
	c, err := client.New(server, "kills")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, starting)
	defer cancel()
	for {
		queues, err := c.Queues(ctx)
		if err == nil && len(queues) > 0 {
			return nil
		}
		if !sleep(ctx, 100*time.Millisecond) {
			return fmt.Errorf("the gateway does not answer: %w", err)
		}
	}
}

// torment plays the scenario while processes are killed. When all is decided, or enough were killed, they are
// left in peace.
func (r *round) torment(ctx context.Context, f *fleet.Fleet, b *brokers, play *scenario.Scenario) (map[string]view.Change, error) {
	tormenting, cease := context.WithCancel(ctx)
	defer cease()
	ended := make(chan error, 1)
	t := &torment{
		fleet: f, plan: plan.New(r.seed, targets(b)), counts: &r.counts, logger: r.logger, brokers: b,
		configFile: r.place.configFile(instances[0]),
	}
	first, second := r.releases()
	t.binaries = []string{first.binary, second.binary}
	go func() { ended <- t.run(tormenting, r.enough) }()
	replaced := make(chan error, 1)
	if r.run.beside != "" {
		go func() { replaced <- r.replace(tormenting, f, b) }()
	} else {
		replaced <- nil
	}
	telling, quiet := context.WithCancel(ctx)
	defer quiet()
	go r.tell(telling, len(play.Sample.Changes))
	changes, err := play.Run(ctx)
	cease()
	err = errors.Join(err, <-ended, <-replaced)
	if err == nil {
		err = f.Calm()
	}
	return changes, err
}

// tell says how far it is, now and then.
func (r *round) tell(ctx context.Context, changes int) {
	begun := time.Now()
	for sleep(ctx, 15*time.Second) {
		r.mu.Lock()
		decided := 0
		for _, u := range r.last {
			if view.Final(u.State) {
				decided++
			}
		}
		r.mu.Unlock()
		fmt.Fprintf(r.run.progress, "round %d, %s: %d of %d changes decided; %s\n", r.number, time.Since(begun).Round(time.Second), decided, changes, &r.counts)
	}
}

func (r *round) see(seen client.Seen) {
	if seen.Change == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = map[string]view.Update{}
	}
	r.last[seen.Change.Change] = *seen.Change
}

// pending is what is known of the changes when nothing happens any more.
func (r *round) pending(s *sample.Repository) map[string]view.Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]view.Change{}
	for _, c := range s.Changes {
		if u, known := r.last[c.Name]; known {
			v := view.Change{}
			v.Summary = u.Summary
			out[c.Name] = v
		}
	}
	return out
}

func (r *round) readLog(ctx context.Context, b *brokers) error {
	log, err := kafka.Open(ctx, kafka.Options{Brokers: b.addresses, ClientID: "landfall-kills", Log: r.logger, Wait: time.Minute,
		Client: func() []kgo.Opt { return broker.WithSecret(r.secret(b)()) }})
	if err != nil {
		return fmt.Errorf("the log cannot be read: %w", err)
	}
	defer log.Close()
	if r.log, err = verdict.ReadLog(ctx, log); err != nil {
		return err
	}
	untold, err := verdict.Outcomes(ctx, log, 30*time.Second)
	if err != nil {
		return err
	}
	r.problems = append(r.problems, untold...)
	if r.run.beside == "" {
		err = replay.VerifyQuietly(ctx, log, r.logger)
	} else {
		first, second := r.releases()
		r.problems = append(r.problems, unclaimed(r.log.ClaimsOf, first, second)...)
		err = replay.VerifyVersion(ctx, log, r.run.version, r.logger)
	}
	if err != nil {
		r.problems = append(r.problems, fmt.Sprintf("the cores, run again over the log: %v", err))
	}
	return nil
}

// judge audits every commit since the sample was made and holds what became of the changes against what has to become of them.
func (r *round) judge(ctx context.Context, s *sample.Repository, clone *gitrepo.Repo, changes map[string]view.Change, config *configuration.Configuration) (verdict.Line, error) {
	if err := clone.Fetch(ctx, gitrepo.Wanted{Branches: []string{sample.Branch}}); err != nil {
		return verdict.Line{}, err
	}
	commits, err := audit.Range(ctx, clone, sample.Branch, s.Head, "")
	if err != nil {
		return verdict.Line{}, err
	}
	mainline := expectation.Mainline{Commits: commits}
	infos, err := clone.CommitInfos(ctx, mainline.Commits)
	if err != nil {
		return verdict.Line{}, err
	}
	for _, info := range infos {
		mainline.Titles = append(mainline.Titles, audit.Subject(info.Message))
	}
	q := config.Queues[queue]
	auditor, err := audit.New(audit.Options{
		Repo: clone, Queue: q.Name, Analysis: q.Analysis, Steps: q.Steps, Workers: runtime.NumCPU() + 1, Dir: r.place.audit(), Logger: r.logger,
	})
	if err != nil {
		return verdict.Line{}, err
	}
	defer auditor.Close()
	fmt.Fprintf(r.run.progress, "round %d: auditing the mainline, %d commits\n", r.number, len(commits))
	report, err := auditor.Judge(ctx, commits)
	if err != nil {
		return verdict.Line{}, err
	}
	if report.Green() != len(report.Commits) {
		report.Write(r.run.progress)
	}
	line, problems := verdict.Judge(s, changes, mainline, report)
	r.problems = append(r.problems, problems...)
	return line, nil
}
