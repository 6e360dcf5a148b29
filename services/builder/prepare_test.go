package builder

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
)

func TestATreeIsTheMainlineTheAssumedAndTheChangeInOrder(t *testing.T) {
	s := newSite(t, memory.Options{})
	base := s.commit("", scripts(map[string]string{"a": "true", "b": "true"}))
	k := s.commit(base, map[string]string{"a/k": "k\n"})
	c1 := s.commit(base, map[string]string{"b/c1": "c1\n"})
	c2 := s.commit(c1, map[string]string{"b/c2": "c2\n"})
	both := s.commit(k, map[string]string{"b/c1": "c1\n", "b/c2": "c2\n"})
	s.start("a")
	b := s.scheduled("b1", base,
		&eventsv1.TargetVersion{Target: "//b:t", Part: 1}, &eventsv1.TargetVersion{Target: "//b:t", Part: 2},
		&eventsv1.TargetVersion{Target: "//a:t"}, &eventsv1.TargetVersion{Target: "//b:t"})
	b.Change, b.Assumed = change("C", pick(base, c1), pick(c1, c2)), []*eventsv1.AssumedChange{change("K", pick(base, k))}
	s.decide(b)
	p := s.prepared("b1")
	if p.Outcome != eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED || p.Change.Change != "C" || len(p.Assumed) != 1 || len(p.Versions) != 4 {
		t.Fatal(p)
	}
	if want := s.git("rev-parse", both+"^{tree}"); p.Tree != want {
		t.Errorf("tree %s, want %s", p.Tree, want)
	}
	v := p.Versions
	if v[0].Part != 1 || v[0].Hash == v[1].Hash || v[1].Hash != v[3].Hash || v[3].Part != 0 {
		t.Errorf("versions %v", v)
	}
	// Each version is run in the tree that has it.
	done := map[string]bool{}
	for range 3 {
		f := await(s, func(*eventsv1.StepFinished) bool { return true })
		if f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED || done[f.Target+f.Hash] {
			t.Fatal(f)
		}
		done[f.Target+f.Hash] = true
	}
}

func TestWhatDoesNotMergeNamesTheFilesAndTheOtherChange(t *testing.T) {
	s := newSite(t, memory.Options{})
	root := s.commit("", map[string]string{"landfall.yaml": "targets: []\n", "a": "0\n", "b": "0\n"})
	base := s.commit(root, map[string]string{"b": "mainline\n"})
	k1 := s.commit(root, map[string]string{"other": "1\n"})
	k2 := s.commit(root, map[string]string{"a": "2\n"})
	onA, onB := s.commit(root, map[string]string{"a": "3\n"}), s.commit(root, map[string]string{"b": "3\n"})
	s.start("a")
	for _, c := range []struct {
		name    string
		assumed []*eventsv1.AssumedChange
		change  *eventsv1.AssumedChange
		want    string
	}{
		{"with an assumed one", []*eventsv1.AssumedChange{change("K1", pick(root, k1)), change("K2", pick(root, k2))}, change("C", pick(root, onA)),
			"Change C does not merge with change K2: conflict in a."},
		{"with the mainline", []*eventsv1.AssumedChange{change("K1", pick(root, k1))}, change("C", pick(root, onB)),
			"Change C does not merge with the mainline: conflict in b."},
		{"among the assumed", []*eventsv1.AssumedChange{change("K2", pick(root, k2)), change("K3", pick(root, onA))}, change("C", pick(root, k1)),
			"Change K3, which the build assumes, does not merge with change K2: conflict in a."},
	} {
		b := s.scheduled(c.name, base)
		b.Assumed, b.Change = c.assumed, c.change
		s.decide(b)
		if p := s.prepared(c.name); p.Outcome != eventsv1.PreparationOutcome_PREPARATION_OUTCOME_UNMERGEABLE || p.Message != c.want {
			t.Errorf("%s: %v %q, want %q", c.name, p.Outcome, p.Message, c.want)
		}
	}
}

func TestInvalidDefinitionsAreTheChangesUnlessTheMainlineHasThem(t *testing.T) {
	s := newSite(t, memory.Options{})
	base := s.commit("", scripts(map[string]string{"a": "true"}))
	broken := s.commit(base, map[string]string{"a/landfall.yaml": "targets: [{nam: t}]\n"})
	more := s.commit(broken, map[string]string{"x": "x\n"})
	s.start("a")
	b := s.scheduled("b1", base, asked("//a:t")...)
	b.Change = change("C", pick(base, broken))
	s.decide(b)
	if p := s.prepared("b1"); p.Outcome != eventsv1.PreparationOutcome_PREPARATION_OUTCOME_INVALID || !strings.Contains(p.Message, "a/landfall.yaml") || len(p.Versions) > 0 {
		t.Errorf("on a valid mainline: %v", p)
	}
	b = s.scheduled("b2", broken, asked("//:repository")...)
	b.Change = change("D", pick(broken, more))
	s.decide(b)
	if p := s.prepared("b2"); p.Outcome != eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED || len(p.Versions) != 1 || p.Versions[0].Hash == "" || p.Versions[0].Trivial {
		t.Errorf("the repository on a broken mainline: %v", p)
	}
	// Nothing can verify it, and that is said, as often as there are retries.
	if f := s.finished("//:repository"); f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN || !strings.Contains(f.Reason, "whole_repository_steps") || !strings.Contains(f.Reason, "a/landfall.yaml:1") {
		t.Error(f)
	}
	b = s.scheduled("b3", broken, asked("//a:t")...)
	b.Change = change("D", pick(broken, more))
	s.decide(b)
	if p := s.prepared("b3"); p.Outcome != eventsv1.PreparationOutcome_PREPARATION_OUTCOME_INFRASTRUCTURE || len(p.Versions) > 0 || !strings.Contains(p.Message, "//a:t") {
		t.Errorf("a target that is not known to be there: %v", p)
	}
}

func TestAPreparationIsTriedAgainBeforeItIsGivenUp(t *testing.T) {
	s := newSite(t, memory.Options{})
	base := s.commit("", scripts(map[string]string{"a": "true"}))
	tries := 0
	s.start("a", func(o *Options) {
		repo := o.Repo
		o.Repo = func(ctx context.Context, name string) (*gitrepo.Repo, error) {
			if tries++; tries <= 5 {
				return nil, errors.New("the mirror is away")
			}
			return repo(ctx, name)
		}
	})
	// Three tries each: the first build gets none through, the second its last.
	s.decide(s.scheduled("b1", base, asked("//a:t")...))
	if p := s.prepared("b1"); p.Outcome != eventsv1.PreparationOutcome_PREPARATION_OUTCOME_INFRASTRUCTURE || !strings.Contains(p.Message, "the mirror is away") {
		t.Error(p)
	}
	s.decide(s.scheduled("b2", base, asked("//a:t")...))
	if p := s.prepared("b2"); p.Outcome != eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED {
		t.Error(p)
	}
}

// TestATreeWhoseTargetsTakeTooLongEndsItsPreparation, and is read once: it would take as long again.
func TestATreeWhoseTargetsTakeTooLongEndsItsPreparation(t *testing.T) {
	s := newSite(t, memory.Options{})
	queue := s.config.Queues[queueName]
	queue.Analysis.Timeout = time.Nanosecond
	s.config.Queues[queueName] = queue
	base := s.commit("", scripts(map[string]string{"a": "true"}))
	tries := 0
	s.start("a", func(o *Options) {
		repo := o.Repo
		o.Repo = func(ctx context.Context, name string) (*gitrepo.Repo, error) {
			tries++
			return repo(ctx, name)
		}
	})
	s.decide(s.scheduled("b1", base, asked("//a:t")...))
	p := s.prepared("b1")
	if p.Outcome != eventsv1.PreparationOutcome_PREPARATION_OUTCOME_INFRASTRUCTURE || !strings.Contains(p.Message, "took longer than 1ns") || tries > 1 {
		t.Errorf("after %d tries: %v", tries, p)
	}
}

func TestAPanicCostsOneTryAndNotTheInstance(t *testing.T) {
	s := newSite(t, memory.Options{})
	base := s.commit("", scripts(map[string]string{"a": "true"}))
	tries := 0
	s.start("a", func(o *Options) {
		repo := o.Repo
		o.Repo = func(ctx context.Context, name string) (*gitrepo.Repo, error) {
			if tries++; tries <= 2 {
				panic("a defect")
			}
			return repo(ctx, name)
		}
	})
	s.decide(s.scheduled("b1", base, asked("//a:t")...))
	if p := s.prepared("b1"); p.Outcome != eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED {
		t.Error(p)
	}
	s.finished("//a:t")
}

func TestAnUnusableScheduleIsADeadLetterAndTheQueueGoesOn(t *testing.T) {
	s := newSite(t, memory.Options{})
	base := s.commit("", scripts(map[string]string{"a": "true"}))
	s.start("a")
	bad := map[string]func(*eventsv1.BuildScheduled){
		"base":   func(b *eventsv1.BuildScheduled) { b.Base = "HEAD" },
		"commit": func(b *eventsv1.BuildScheduled) { b.Change = change("C", pick(base, "--upload-pack=x")) },
		"empty":  func(b *eventsv1.BuildScheduled) { b.Change = change("C") },
		"part": func(b *eventsv1.BuildScheduled) {
			b.Targets = []*eventsv1.TargetVersion{{Target: "//a:t", Part: 2}}
		},
	}
	for name, spoil := range bad {
		b := s.scheduled(name, base, asked("//a:t")...)
		spoil(b)
		s.decide(b)
		if p := s.prepared(name); p.Outcome != eventsv1.PreparationOutcome_PREPARATION_OUTCOME_INFRASTRUCTURE || p.Message == "" {
			t.Errorf("%s: %v", name, p)
		}
	}
	if err := s.log.Write(t.Context(), journal.Record{Topic: events.TopicDecisions, Partition: s.partition(), Key: []byte(queueName), Value: []byte("?"),
		Headers: []events.Header{{Key: "ce_type", Value: []byte("landfall.events.v1.Decision")}, {Key: "ce_source", Value: []byte("/landfall/selector/1")}}}); err != nil {
		t.Fatal(err)
	}
	s.decide(s.scheduled("good", base, asked("//a:t")...))
	s.finished("//a:t")
	letters, err := s.log.Follow(t.Context(), events.TopicDeadLetters, s.partition(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for range bad {
		e, ok, err := letters.TryNext()
		if err != nil || !ok {
			t.Fatalf("dead letter: %v, %v", ok, err)
		}
		d := e.Message.(*eventsv1.DeadLetter)
		if d.Topic != events.TopicDecisions || d.Queue != queueName || d.Offset <= 0 || d.Reason == "" || d.Service != events.ServiceBuilder {
			t.Error(d)
		}
	}
}

func TestWhatIsProvenIsNotRunAgainUntilItIsWithdrawn(t *testing.T) {
	s := newSite(t, memory.Options{})
	s.policy.FailedRetries = 0
	base := s.commit("", scripts(map[string]string{"good": "echo run >>$OUTSIDE/good", "bad": "echo run >>$OUTSIDE/bad; false"}))
	s.start("a")
	s.decide(s.scheduled("b1", base, asked("//good:t")...), s.scheduled("b2", base, asked("//bad:t")...))
	for len(drained[*eventsv1.StepFinished](s)) < 2 {
		s.read()
	}
	s.decide(s.scheduled("b3", base, asked("//good:t", "//bad:t")...))
	p := s.prepared("b3")
	bad := p.Versions[1]
	s.admit("c")
	s.append(events.TopicChanges, events.ServiceLander, s.claimLander(), &eventsv1.ChangeRejected{Change: &eventsv1.ChangeRef{Change: "c", Revision: 1}, Reason: &eventsv1.Reason{
		Failed: []*eventsv1.Proof{{Version: bad, Attempt: 9}}}})
	s.restOnLog()
	s.decide(s.scheduled("b4", base, asked("//good:t", "//bad:t")...))
	if f := s.finished("//bad:t"); f.Hash != bad.Hash || f.Attempt != 2 || f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_FAILED {
		t.Error(f)
	}
	if good := s.appears("good"); good != "run\n" {
		t.Errorf("//good:t ran again: %q", good)
	}
}
