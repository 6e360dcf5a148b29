package builder

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/runner"
	"landfall.build/services/builder/execution"
)

func TestMain(m *testing.M) {
	execution.MaybeSupervise()
	os.Exit(m.Run())
}

const (
	queueName  = "main"
	repository = "sample"
	// patience bounds every wait for something that must happen.
	patience = 2 * time.Minute
)

// site is a remote repository, a log, and a selector that decides what the test wants.
type site struct {
	t      testing.TB
	dir    string
	remote string
	clone  string
	log    *memory.Log
	config *configuration.Configuration
	policy *eventsv1.StepPolicy
	term   int64
	builds journal.Cursor
	seen   []proto.Message
	// positions are what the next decisions rest on.
	positions *eventsv1.Positions
}

func newSite(t testing.TB, o memory.Options) *site {
	t.Helper()
	o.Partitions = 2
	dir := t.TempDir()
	s := &site{
		t: t, dir: dir, remote: filepath.Join(dir, "remote.git"), clone: filepath.Join(dir, "clone"),
		log: memory.New(o), config: configuration.New(configuration.Defaults{Workers: 2}),
		policy: &eventsv1.StepPolicy{TimeoutUs: time.Minute.Microseconds(), LogLimitBytes: 1 << 20, FailedRetries: 1, TimedOutRetries: 1, InfrastructureRetries: 1},
	}
	t.Cleanup(s.log.Close)
	s.config.Data = dir
	s.config.Repositories = map[string]configuration.Repository{repository: configuration.NewRepository(repository)}
	queue := configuration.NewQueue(queueName, configuration.Defaults{Workers: 2, Path: os.Getenv("PATH")})
	queue.Repository = repository
	queue.Steps.Environment.Variables, queue.Steps.Write = map[string]string{"OUTSIDE": s.outside("")}, []string{s.outside("")}
	s.config.Queues = map[string]configuration.Queue{queueName: queue}
	if err := os.MkdirAll(s.outside(""), 0o755); err != nil {
		t.Fatal(err)
	}
	s.command(dir, "init", "--quiet", "--bare", "--initial-branch=main", s.remote)
	s.command(dir, "init", "--quiet", "--initial-branch=main", s.clone)
	s.git("remote", "add", "origin", s.remote)
	var err error
	if s.term, err = runner.Claim(t.Context(), s.log, events.ServiceSelector, "1", "test", events.TopicDecisions, s.partition(), time.Now()); err != nil {
		t.Fatal(err)
	}
	if s.builds, err = s.log.Follow(t.Context(), events.TopicBuilds, s.partition(), 0); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *site) partition() int32 { return events.PartitionOf(queueName, s.log.Partitions()) }

// outside is a path that steps can write to, at $OUTSIDE.
func (s *site) outside(name string) string { return filepath.Join(s.dir, "outside", name) }

// command runs plain git.
func (s *site) command(dir string, args ...string) string {
	s.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "LC_ALL=C",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (s *site) git(args ...string) string { s.t.Helper(); return s.command(s.clone, args...) }

// commit writes files onto a commit ("" is none), and gives the new one, which the remote has.
func (s *site) commit(onto string, files map[string]string) string {
	s.t.Helper()
	if onto != "" {
		s.git("checkout", "--quiet", "--detach", onto)
	}
	for path, content := range files {
		full := filepath.Join(s.clone, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
	s.git("add", "--all")
	s.git("commit", "--quiet", "-m", "change")
	id := s.git("rev-parse", "HEAD")
	s.git("push", "--quiet", "--force", "origin", id+":refs/heads/topic/"+id)
	return id
}

// target is a manifest with one target :t of one folder, whose step is a shell script next to it.
const target = "targets: [{name: t, sources: [\"**\"], steps: [{name: check, run: [sh, check.sh], dir: %}]}]\n"

func manifestOf(folder string) string { return strings.ReplaceAll(target, "%", folder) }

// scripts are the files of folders with one target each, "//folder:t", and what its step does.
func scripts(byFolder map[string]string) map[string]string {
	files := map[string]string{"landfall.yaml": "targets: []\n"}
	for folder, script := range byFolder {
		files[folder+"/landfall.yaml"] = manifestOf(folder)
		files[folder+"/check.sh"] = script
	}
	return files
}

func change(id string, commits ...*eventsv1.LandingCommit) *eventsv1.AssumedChange {
	return &eventsv1.AssumedChange{Change: &eventsv1.ChangeRef{Change: id, Revision: 1}, LandingCommits: commits}
}

func pick(base, head string) *eventsv1.LandingCommit {
	return &eventsv1.LandingCommit{Base: base, Head: head}
}

// asked are targets at the whole tree.
func asked(names ...string) []*eventsv1.TargetVersion {
	var list []*eventsv1.TargetVersion
	for _, n := range names {
		list = append(list, &eventsv1.TargetVersion{Target: n})
	}
	return list
}

// scheduled verifies the mainline at base itself.
func (s *site) scheduled(build, base string, targets ...*eventsv1.TargetVersion) *eventsv1.BuildScheduled {
	return &eventsv1.BuildScheduled{
		Build: build, Change: &eventsv1.AssumedChange{}, Base: base, Targets: targets, Value: 1,
		Steps: s.policy, Repository: repository, Branch: "main",
	}
}

// decide writes one Decision.
func (s *site) decide(items ...proto.Message) {
	s.t.Helper()
	d := &eventsv1.Decision{StampUs: time.Now().UnixMicro(), Positions: s.positions}
	for _, i := range items {
		switch m := i.(type) {
		case *eventsv1.BuildScheduled:
			d.Items = append(d.Items, &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: m}})
		case *eventsv1.BuildAborted:
			d.Items = append(d.Items, &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildAborted{BuildAborted: m}})
		default:
			s.t.Fatalf("no item: %T", i)
		}
	}
	s.append(events.TopicDecisions, events.ServiceSelector, s.term, d)
}

// restOnLog has the next decisions rest on what the log holds now.
func (s *site) restOnLog() {
	s.t.Helper()
	changes, err := s.log.End(s.t.Context(), events.TopicChanges, s.partition())
	if err != nil {
		s.t.Fatal(err)
	}
	builds, err := s.log.End(s.t.Context(), events.TopicBuilds, s.partition())
	if err != nil {
		s.t.Fatal(err)
	}
	s.positions = &eventsv1.Positions{Changes: changes, Builds: builds}
}

// claimLander begins a term of the lander's.
func (s *site) claimLander() int64 {
	s.t.Helper()
	term, err := runner.Claim(s.t.Context(), s.log, events.ServiceLander, "1", "test", events.TopicChanges, s.partition(), time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	return term
}

// admit puts a change into the queue.
func (s *site) admit(id string) {
	s.t.Helper()
	s.append(events.TopicChanges, events.ServiceGateway, -1, &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{
		Change: id, Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{Head: id}}}})
}

func (s *site) append(topic, service string, term int64, m proto.Message) {
	s.t.Helper()
	_, err := s.log.Append(s.t.Context(), topic, s.partition(), events.Envelope{
		ID: strconv.FormatInt(time.Now().UnixNano(), 36), Source: service, Instance: "test", Queue: queueName, Time: time.Now(), Term: term, Message: m,
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// running is an instance of the service.
type running struct {
	stop func()
	dir  string
}

// start runs an instance until stop, or the end of the test.
func (s *site) start(instance string, adjust ...func(*Options)) *running {
	s.t.Helper()
	dir := filepath.Join(s.dir, "builder-"+instance)
	var once sync.Once
	var repo *gitrepo.Repo
	var opened error
	o := Options{
		Log: s.log, Configuration: s.config, Dir: dir, Workers: 2, Instance: instance,
		Logger: slog.New(slog.NewTextHandler(testWriter{s.t}, nil)).With("instance", instance),
		Repo: func(ctx context.Context, name string) (*gitrepo.Repo, error) {
			if name != repository {
				return nil, errors.New("no such repository")
			}
			once.Do(func() {
				repo, opened = gitrepo.Open(context.WithoutCancel(ctx), gitrepo.Options{Remote: s.remote, Dir: filepath.Join(dir, "mirror.git")})
			})
			return repo, opened
		},
		pauses: []time.Duration{time.Millisecond, time.Millisecond},
	}
	for _, a := range adjust {
		a(&o)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error, 1)
	go func() { done <- New(o).Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("instance %s: %v", instance, err)
		}
		if repo != nil {
			repo.Close()
		}
	})
	s.t.Cleanup(stop)
	return &running{stop: stop, dir: dir}
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s", bytes.TrimSpace(p))
	return len(p), nil
}

// read takes the next record of landfall.builds.
func (s *site) read() proto.Message {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	e, err := s.builds.Next(ctx)
	if err != nil {
		s.t.Fatalf("waiting for a record of landfall.builds: %v", err)
	}
	s.seen = append(s.seen, e.Message)
	return e.Message
}

// await reads on to the first record of a type that a condition holds for.
func await[M proto.Message](s *site, holds func(M) bool) M {
	s.t.Helper()
	for {
		if m, is := s.read().(M); is && holds(m) {
			return m
		}
	}
}

func (s *site) prepared(build string) *eventsv1.BuildPrepared {
	s.t.Helper()
	return await(s, func(m *eventsv1.BuildPrepared) bool { return m.Build == build })
}

func (s *site) finished(target string) *eventsv1.StepFinished {
	s.t.Helper()
	return await(s, func(m *eventsv1.StepFinished) bool { return m.Target == target })
}

// drained are all records of a type that the log has now.
func drained[M proto.Message](s *site) []M {
	s.t.Helper()
	for {
		e, ok, err := s.builds.TryNext()
		if err != nil {
			s.t.Fatal(err)
		}
		if !ok {
			break
		}
		s.seen = append(s.seen, e.Message)
	}
	var list []M
	for _, m := range s.seen {
		if m, is := m.(M); is {
			list = append(list, m)
		}
	}
	return list
}

// appears waits for a file outside and gives its content.
func (s *site) appears(name string) string {
	s.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if content, err := os.ReadFile(s.outside(name)); err == nil && len(content) > 0 {
			return string(content)
		}
	}
	s.t.Fatalf("%s did not appear", name)
	return ""
}

func (s *site) touch(name string) {
	s.t.Helper()
	if err := os.WriteFile(s.outside(name), []byte("there\n"), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// until is a script that shows that it runs, and waits for a file.
func until(name string) string {
	return "echo run >>$OUTSIDE/" + name + ".runs\nwhile [ ! -e $OUTSIDE/" + name + " ]; do sleep 0.02; done\n"
}
