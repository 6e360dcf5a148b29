package doctor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/twmb/franz-go/pkg/kadm"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/platform/health"
	"landfall.build/platform/journal/kafka"
	"landfall.build/services/builder/execution"
	"landfall.build/services/gateway/api"
	"landfall.build/tools/client"
	"landfall.build/tools/doctor"
	"landfall.build/tools/embedded/broker"
	"landfall.build/tools/embedded/stack"
)

func TestMain(m *testing.M) {
	execution.MaybeSupervise()
	os.Exit(m.Run())
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// patient is what the doctor is asked about: a queue with a repository, in which nothing is wrong.
type patient struct {
	t          *testing.T
	bare, work string
	// data, url and branch are of the configuration; queue and rest are lines of its queue, and behind it.
	data, url, branch, queue, rest string
	options                        doctor.Options
}

const manifest = "targets:\n  - name: all\n    sources: [\"**\"]\n    steps:\n      - name: no-bug\n        run: [\"sh\", \"-c\", \"! test -e bug\"]\n"

func newPatient(t *testing.T) *patient {
	t.Helper()
	folder := t.TempDir()
	p := &patient{
		t: t, bare: filepath.Join(folder, "shop.git"), work: filepath.Join(folder, "work"), data: filepath.Join(folder, "data"), branch: "main",
		options: doctor.Options{Config: filepath.Join(folder, "landfall.config.yaml"), Server: "http://" + freeAddress(t), Logger: quiet(), Room: 1, Wait: 300 * time.Millisecond},
	}
	p.url = p.bare
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	p.git("", "init", "-q", "--bare", "-b", "main", p.bare)
	p.git("", "clone", "-q", p.bare, p.work)
	p.git(p.work, "checkout", "-q", "-B", "main")
	p.commit("landfall.yaml", manifest)
	return p
}

func (p *patient) git(dir string, args ...string) {
	p.t.Helper()
	c := exec.Command("git", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.com")
	if out, err := c.CombinedOutput(); err != nil {
		p.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// commit puts a file on the mainline.
func (p *patient) commit(name, text string) {
	p.t.Helper()
	p.write(filepath.Join(p.work, name), text)
	p.git(p.work, "add", "-A")
	p.git(p.work, "commit", "-q", "-m", name)
	p.git(p.work, "push", "-q", "origin", "main")
}

func (p *patient) write(path, text string) {
	p.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// shares configures a store of outputs, whose url comes first.
func (p *patient) shares(store string) {
	p.t.Setenv("SEAL", "a key of some length")
	p.rest = "builder: {outputs: {url: " + store + ", seal: {environment: SEAL}}}\n"
}

// configure writes the configuration.
func (p *patient) configure() {
	p.write(p.options.Config, fmt.Sprintf("version: 1\ndata: %q\nrepositories: {shop: {url: %q, poll: 200ms}}\nqueues:\n  shop:\n    repository: shop\n    branch: %s\n%sgateway: {listen: \"127.0.0.1:0\"}\n%s",
		p.data, p.url, p.branch, p.queue, p.rest))
}

// freeAddress returns an address of the loopback that nothing listens on.
func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// broker starts a broker that the configuration names.
func (p *patient) broker() {
	dir := p.t.TempDir()
	b, err := broker.Start(p.t.Context(), broker.Options{Dir: dir, Log: quiet()})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(b.Close)
	p.options.Wait = 20 * time.Second
	p.rest += fmt.Sprintf("broker: {brokers: [%q], partitions: 1, replication: 1, secret_file: %q}\n", b.Addr(), filepath.Join(dir, "secret"))
}

// log opens the log that the configuration names, and makes its topics.
func (p *patient) log(partitions int32) *kafka.Log {
	p.configure()
	c, err := configuration.Load(p.options.Config, configuration.Defaults{Workers: 1})
	if err != nil {
		p.t.Fatal(err)
	}
	l, err := kafka.Open(p.t.Context(), kafka.Options{Brokers: c.Broker.Brokers, ClientID: "test", Log: quiet(), Partitions: partitions, Replication: 1, Client: broker.Access(c, c.Broker.Brokers, "operator")})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(l.Close)
	return l
}

// beat is what a service of another process posts.
func beat(instance, version string, ahead time.Duration) health.Beat {
	now := time.Now().Add(ahead)
	return health.Beat{Service: events.ServiceBuilder, Instance: instance, Version: version, Boot: instance, Started: now, At: now}
}

// posting posts beats until the test ends.
func posting(t *testing.T, l *kafka.Log, beats func() []health.Beat) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			_ = health.NewBoard(l.Admin()).Post(ctx, beats())
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// faults make, by code, what doctor finds.
var faults = map[string]func(p *patient){
	"remote_unreachable": func(p *patient) { p.url = filepath.Join(p.t.TempDir(), "nowhere.git") },
	"branch_missing":     func(p *patient) { p.branch = "other" },
	"push_refused":       func(p *patient) { p.url = p.work }, // it has the branch checked out
	"nothing_proven":     func(p *patient) { p.git(p.work, "rm", "-q", "landfall.yaml"); p.commit("x", "") },
	"targets_invalid":    func(p *patient) { p.commit("landfall.yaml", "targets: 7\n") },
	"targets_unknown": func(p *patient) {
		p.commit("MODULE.bazel", "")
		p.queue = fmt.Sprintf("    analysis: {adapter: bazel, bazel: {binary: %q}}\n", filepath.Join(p.t.TempDir(), "no-bazel"))
	},
	"tool_missing": func(p *patient) { p.commit("landfall.yaml", strings.ReplaceAll(manifest, `"sh"`, "there-is-none")) },
	"tool_broken": func(p *patient) {
		p.commit("go.mod", "module example.com/shop\n")
		folder := p.t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, "go"), []byte("#!/bin/sh\nexit 3\n"), 0o755); err != nil {
			p.t.Fatal(err)
		}
		p.queue = fmt.Sprintf("    analysis: {adapter: go, toolchain: one}\n    steps: {environment: {path: %q}}\n", folder+":/usr/bin:/bin")
	},
	"target_without_command": func(p *patient) { p.commit("landfall.yaml", manifest+"  - {name: idle, sources: [idle]}\n") },
	"files_uncovered": func(p *patient) {
		p.commit("landfall.yaml", strings.ReplaceAll(manifest, `"**"`, "landfall.yaml"))
		p.commit("x", "")
	},
	"attributes_not_applied": func(p *patient) { p.commit(".gitattributes", "* ident\n") },
	"submodules_empty": func(p *patient) {
		p.git(p.work, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",lib")
		p.git(p.work, "commit", "-q", "-m", "lib")
		p.git(p.work, "push", "-q", "origin", "HEAD:main")
	},
	"cache_open": func(p *patient) {
		p.queue = "    analysis: {adapter: go, toolchain: one}\n    steps: {write: [/tmp/cache], environment: {variables: {GOCACHE: /tmp/cache/go}}}\n"
	},
	"adapter_without_targets": func(p *patient) { p.queue = "    analysis: {adapter: go, toolchain: one}\n" },
	"toolchain_unknown": func(p *patient) {
		p.commit("go.mod", "module example.com/shop\n")
		p.queue = fmt.Sprintf("    analysis: {adapter: go}\n    steps: {environment: {path: %q}}\n", p.t.TempDir())
	},
	"data_in_working_folder": func(p *patient) { p.data = filepath.Join(p.work, "data") },
	"data_unwritable": func(p *patient) {
		file := filepath.Join(p.t.TempDir(), "file")
		p.write(file, "")
		p.data = filepath.Join(file, "data")
	},
	"check_failed": func(p *patient) { // mirrors are kept below data
		file := filepath.Join(p.t.TempDir(), "file")
		p.write(file, "")
		p.data = filepath.Join(file, "data")
	},
	"disk_low": func(p *patient) { p.options.Room = 1 << 60 },
	"secret_readable": func(p *patient) {
		dir, err := os.MkdirTemp("", "doctor") // the name of TempDir has the test's
		if err != nil {
			p.t.Fatal(err)
		}
		p.t.Cleanup(func() { os.RemoveAll(dir) })
		file := filepath.Join(dir, "gateway")
		p.write(file, "x")
		p.rest = fmt.Sprintf("broker: {brokers: [%q], sasl: {mechanism: PLAIN, user: landfall, secret: {file: %q}}}\n", freeAddress(p.t), filepath.Join(filepath.Dir(file), "{service}"))
	},
	"issuer_unreachable": func(p *patient) {
		p.rest = fmt.Sprintf("access: {issuers: {company: {url: \"http://%s\", audiences: [x]}}}\n", freeAddress(p.t))
	},
	"isolation_off": func(p *patient) { p.queue = "    steps: {isolation: off}\n" },
	"cache_shared":  func(p *patient) { p.queue = "    steps: {caches: {npm: {share: queue}}}\n" },
	"network_unreached": func(p *patient) {
		p.queue = "    steps: {environment: {variables: {HTTPS_PROXY: \"http://127.0.0.1:3128\"}}}\n"
	},
	"broker_open": func(p *patient) {
		p.rest = "broker: {brokers: [\"192.0.2.9:9092\"], partitions: 1, replication: 1}\n" // an address of nobody
	},
	"gateway_unreachable": func(p *patient) {},
	"broker_unreachable": func(p *patient) {
		p.rest = fmt.Sprintf("broker: {brokers: [%q], partitions: 1, replication: 1}\n", freeAddress(p.t))
	},
	"topics_unfit": func(p *patient) { p.broker(); p.log(2) },
	"log_cut": func(p *patient) {
		p.broker()
		l := p.log(1)
		if deleted, err := l.Admin().DeleteRecords(p.t.Context(), kadm.Offsets{events.TopicChanges: {0: {Topic: events.TopicChanges, At: 1}}}); err != nil || deleted.Error() != nil {
			p.t.Fatal(err, deleted.Error())
		}
	},
	"archive_unreadable": func(p *patient) {
		p.broker()
		p.log(1)
		p.rest = strings.Replace(p.rest, "broker: {", fmt.Sprintf("broker: {archive: {url: %q}, ", filepath.Join(p.t.TempDir(), "none")), 1)
	},
	"dead_letters": func(p *patient) {
		p.broker()
		if _, err := p.log(1).Append(p.t.Context(), events.TopicDeadLetters, 0, events.Envelope{
			Source: events.ServiceGateway, Queue: "shop", Time: time.Now(), Term: -1, Message: &eventsv1.DeadLetter{Reason: "test"},
		}); err != nil {
			p.t.Fatal(err)
		}
	},
	"clock_differs": func(p *patient) {
		p.broker()
		posting(p.t, p.log(1), func() []health.Beat { return []health.Beat{beat("ahead", "1", time.Hour)} })
	},
	"outputs_unshared": func(p *patient) { p.shares(fmt.Sprintf("s3://shop, s3: {endpoint: \"http://%s\"}", freeAddress(p.t))) },
	"outputs_refused": func(p *patient) {
		p.shares("grpc://" + freeAddress(p.t))
		p.t.Setenv("SEAL", "too short")
	},
	"history_not_kept": func(p *patient) { p.t.Setenv("LANDFALL_CLICKHOUSE_HOME", p.t.TempDir()) },
	"history_unreadable": func(p *patient) {
		p.rest = fmt.Sprintf("clickhouse: {dsn: \"clickhouse://u:secret@%s/landfall\"}\n", freeAddress(p.t))
	},
}

func TestEachFaultIsFound(t *testing.T) {
	for code, fault := range faults {
		t.Run(code, func(t *testing.T) {
			p := newPatient(t)
			fault(p)
			p.configure()
			found := doctor.Examine(t.Context(), p.options)
			at := slices.IndexFunc(found, func(f doctor.Finding) bool { return f.Code == code })
			if at < 0 {
				t.Fatalf("found: %+v", found)
			}
			if f := found[at]; f.Message == "" || f.Why == "" || f.Severity == "" || strings.Contains(f.Message, "secret") {
				t.Errorf("%+v", f)
			}
		})
	}
}

func TestNothingIsMadeInALogWithoutTopics(t *testing.T) {
	p := newPatient(t)
	p.broker()
	p.configure()
	for range 2 { // the second would find what the first had made
		found := doctor.Examine(t.Context(), p.options)
		if !slices.ContainsFunc(found, func(f doctor.Finding) bool {
			return f.Code == "topics_unfit" && strings.Contains(f.Message, "do not exist")
		}) {
			t.Fatalf("%+v", found)
		}
	}
}

// run runs the command.
func (p *patient) run(args ...string) (string, error) {
	var out bytes.Buffer
	c := doctor.Command(p.options.Config, quiet())
	c.SetOut(&out)
	c.SilenceErrors = true
	c.SetArgs(append([]string{"--server", p.options.Server}, args...))
	err := c.ExecuteContext(p.t.Context())
	return out.String(), err
}

func TestEveryMistakeOfTheConfigurationIsToldAndEndsTheExamination(t *testing.T) {
	p := newPatient(t)
	p.branch = "main\n    colour: red"
	p.rest = "more: 1\n"
	p.configure()
	out, err := p.run("--json")
	var got struct {
		Healthy  bool
		Findings []doctor.Finding
	}
	if unwell := (doctor.Unwell{}); !errors.As(err, &unwell) || unwell.ExitCode() != 1 {
		t.Errorf("it ends with %v", err)
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Healthy || len(got.Findings) != 2 {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, f := range got.Findings {
		if f.Code != "configuration_invalid" {
			t.Errorf("%+v", f)
		}
	}
	if err := os.Remove(p.options.Config); err != nil {
		t.Fatal(err)
	}
	if out, err := p.run(); err == nil || !strings.Contains(out, "configuration_invalid") || !strings.Contains(out, "landfall init") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestWhatRunsIsLookedAt: of a stack without a lander nothing else is wrong, and then more is.
func TestWhatRunsIsLookedAt(t *testing.T) {
	p := newPatient(t)
	p.commit("bug", "red from the start\n")
	p.configure()
	c, err := configuration.Load(p.options.Config, configuration.Defaults{Workers: 1, Path: os.Getenv("PATH")})
	if err != nil {
		t.Fatal(err)
	}
	s, err := stack.Start(context.Background(), stack.Options{Configuration: c, Logger: quiet(), Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p.options.Server = s.URL()
	if out, err := p.run(); err != nil || strings.Contains(out, "gateway") || strings.Contains(out, "service") {
		t.Errorf("of a stack that works: %v\n%s", err, out)
	}
	cl, err := client.New(s.URL(), "tester")
	if err != nil {
		t.Fatal(err)
	}
	p.git(p.work, "checkout", "-q", "-b", "innocent")
	p.write(filepath.Join(p.work, "y"), "y\n")
	p.git(p.work, "add", "-A")
	p.git(p.work, "commit", "-q", "-m", "innocent")
	p.git(p.work, "push", "-q", "origin", "innocent")
	if _, err := cl.Land(t.Context(), "shop", api.LandBody{Change: "innocent", Entries: []api.LandEntry{{Ref: "innocent"}}}); err != nil {
		t.Fatal(err)
	}
	p.await("mainline_red")
	if _, err := cl.Steer(t.Context(), "shop", "", "pause", api.SteerBody{Why: "a test"}); err != nil {
		t.Fatal(err)
	}
	p.await("queue_paused")
	if err := os.Rename(p.bare, p.bare+".away"); err != nil {
		t.Fatal(err)
	}
	p.await("mainline_unreachable")
	troubled := beat("other", "2", 0)
	troubled.Trouble = "its disk is full"
	posting(t, s.Log(), func() []health.Beat { troubled.At = time.Now(); return []health.Beat{troubled} })
	p.await("versions_differ")
	p.await("service_troubled")
}

// TestAChangeThatWaitsForARetryIsFound: it is red, and on the mainline its target ran out of time, so nothing more comes by itself.
func TestAChangeThatWaitsForARetryIsFound(t *testing.T) {
	p := newPatient(t)
	p.commit("landfall.yaml", "targets:\n  - name: all\n    sources: [\"**\"]\n    steps:\n      - name: slow\n        run: [\"sh\", \"-c\", \"test ! -e quick || exit 1; sleep 60\"]\n        timeout: 1s\n")
	p.configure()
	c, err := configuration.Load(p.options.Config, configuration.Defaults{Workers: 1, Path: os.Getenv("PATH")})
	if err != nil {
		t.Fatal(err)
	}
	s, err := stack.Start(context.Background(), stack.Options{Configuration: c, Logger: quiet(), Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p.options.Server = s.URL()
	cl, err := client.New(s.URL(), "tester")
	if err != nil {
		t.Fatal(err)
	}
	p.git(p.work, "checkout", "-q", "-b", "red")
	p.write(filepath.Join(p.work, "quick"), "y\n")
	p.git(p.work, "add", "-A")
	p.git(p.work, "commit", "-q", "-m", "red")
	p.git(p.work, "push", "-q", "origin", "red")
	if _, err := cl.Land(t.Context(), "shop", api.LandBody{Change: "red", Entries: []api.LandEntry{{Ref: "red"}}}); err != nil {
		t.Fatal(err)
	}
	p.await("retry_needed")
	if out, err := p.run(); err != nil || !strings.Contains(out, "warning retry_needed: queue shop: ") || !strings.Contains(out, "landfall retry red") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestARightThatTheAccountLacksIsFound: of a Kafka with ACLs, on which it may do everything but write decisions.
func TestARightThatTheAccountLacksIsFound(t *testing.T) {
	p := newPatient(t)
	all := kfake.ACL{Principal: "User:landfall", Name: "*", Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: kmsg.ACLOperationAll, Allow: true}
	denied := all
	denied.Resource, denied.Name, denied.Operation, denied.Allow = kmsg.ACLResourceTypeTopic, events.TopicDecisions, kmsg.ACLOperationWrite, false
	acls := []kfake.ACL{denied}
	for _, resource := range []kmsg.ACLResourceType{kmsg.ACLResourceTypeTopic, kmsg.ACLResourceTypeGroup, kmsg.ACLResourceTypeCluster} {
		all.Resource = resource
		acls = append(acls, all)
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.EnableACLs(), kfake.User("SCRAM-SHA-256", "landfall", "a secret", acls...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("a secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.options.Wait = 20 * time.Second
	p.rest = fmt.Sprintf("broker: {brokers: [%q], partitions: 1, replication: 1, secret_file: %q}\n", cluster.ListenAddrs()[0], secret)
	p.log(1) // makes the topics
	var lacking []string
	for _, f := range doctor.Examine(t.Context(), p.options) {
		if f.Code == "rights_missing" {
			lacking = append(lacking, f.Message)
		}
	}
	if want := []string{"The ACLs do not allow this account to write landfall.decisions, as is needed by: selector."}; !slices.Equal(lacking, want) {
		t.Errorf("%q, want %q", lacking, want)
	}
}

// TestAModelThatCannotBeUsedIsFound: somebody put one into use that is no model.
func TestAModelThatCannotBeUsedIsFound(t *testing.T) {
	p := newPatient(t)
	p.configure()
	c, err := configuration.Load(p.options.Config, configuration.Defaults{Workers: 1, Path: os.Getenv("PATH")})
	if err != nil {
		t.Fatal(err)
	}
	s, err := stack.Start(context.Background(), stack.Options{Configuration: c, Logger: quiet(), Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p.options.Server = s.URL()
	if _, err := s.Log().Append(t.Context(), events.TopicModels, events.PartitionOf("shop", s.Log().Partitions()), events.Envelope{
		Source: events.ServiceTrainer, Queue: "shop", Time: time.Now(), Term: -1,
		Message: &eventsv1.ModelPromoted{Model: &eventsv1.Model{Kind: eventsv1.ModelKind_MODEL_KIND_SUCCESS, Version: "nonsense", Predictor: []byte("x")}, Who: "tester", StampUs: time.Now().UnixMicro()},
	}); err != nil {
		t.Fatal(err)
	}
	p.await("model_unused")
}

func TestAServiceThatIsMissingIsFound(t *testing.T) {
	p := newPatient(t)
	p.configure()
	c, err := configuration.Load(p.options.Config, configuration.Defaults{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := stack.Start(context.Background(), stack.Options{Configuration: c, Logger: quiet(), Version: "1", Services: []string{events.ServiceGateway, events.ServiceLander}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p.options.Server = s.URL()
	p.await("service_missing")
}

func TestARemoteThatRefusesEveryPushIsFound(t *testing.T) {
	p := newPatient(t)
	p.configure()
	hook := "#!/bin/sh\n[ \"$1\" != refs/heads/main ] || { echo 'You are not allowed to push to main.' >&2; exit 1; }\n"
	if err := os.WriteFile(filepath.Join(p.bare, "hooks", "update"), []byte(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	c, err := configuration.Load(p.options.Config, configuration.Defaults{Workers: 1, Path: os.Getenv("PATH")})
	if err != nil {
		t.Fatal(err)
	}
	s, err := stack.Start(context.Background(), stack.Options{Configuration: c, Logger: quiet(), Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p.options.Server = s.URL()
	cl, err := client.New(s.URL(), "tester")
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []string{"one", "two"} {
		p.git(p.work, "checkout", "-q", "-b", change, "main")
		p.write(filepath.Join(p.work, change), "x\n")
		p.git(p.work, "add", "-A")
		p.git(p.work, "commit", "-q", "-m", change)
		p.git(p.work, "push", "-q", "origin", change)
		if _, err := cl.Land(t.Context(), "shop", api.LandBody{Change: change, Entries: []api.LandEntry{{Ref: change}}}); err != nil {
			t.Fatal(err)
		}
	}
	p.await("landings_paused")
}

// await waits until something is found.
func (p *patient) await(code string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 2*time.Minute)
	defer cancel()
	for {
		found := doctor.Examine(ctx, p.options)
		if slices.ContainsFunc(found, func(f doctor.Finding) bool { return f.Code == code }) {
			return
		}
		select {
		case <-ctx.Done():
			p.t.Fatalf("no %s in %+v", code, found)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// TestTheGuideHasEveryCode, and every code of landfall init --check is one of the doctor's.
func TestTheGuideHasEveryCode(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "operator.md"))
	if err != nil {
		t.Fatal(err)
	}
	codes := doctor.Codes()
	for _, code := range codes {
		if !strings.Contains(string(guide), "`"+code+"`") {
			t.Errorf("the guide lacks %s", code)
		}
	}
	made := regexp.MustCompile(`(?:lack\{|add\()"([a-z_]+)"`)
	seen := 0
	for _, file := range []string{"check.go", "python.go", "survey.go"} {
		text, err := os.ReadFile(filepath.Join("..", "adopt", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range made.FindAllStringSubmatch(string(text), -1) {
			if seen++; !slices.Contains(codes, m[1]) {
				t.Errorf("landfall init --check finds %s, and the doctor does not know it", m[1])
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d codes were read", seen)
	}
}
