package alerts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
	"landfall.build/tools/demo/sample"
	"landfall.build/tools/demo/scenario"
	"landfall.build/tools/embedded/stack"
)

// TestNoAlertFiresWhileTheDemoRuns, of which each second counts as 15.
func TestNoAlertFiresWhileTheDemoRuns(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	cache, err := sample.BuildCache(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := sample.Warm(ctx, cache); err != nil {
		t.Fatal(err)
	}
	bare := filepath.Join(dir, "bookshop.git")
	repository, err := sample.Make(ctx, bare)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, prometheus: newPrometheus(t)}
	clone, err := gitrepo.Open(ctx, gitrepo.Options{Remote: bare, Dir: filepath.Join(dir, "clone.git"), Log: w.logger()})
	if err != nil {
		t.Fatal(err)
	}
	defer clone.Close()
	config, err := configuration.Parse(fmt.Appendf(nil, `version: 1
data: %q
repositories:
  bookshop: {url: %q, poll: 500ms}
queues:
  bookshop:
    repository: bookshop
    workers: 32
    steps: {environment: {path: %q, variables: {GOCACHE: %q}}, write: [%q]}
    retries: {failed: 0, timed_out: 1}
    analysis: {uncovered: {ignore: ["**/*.md"]}}
    priors: {success: 0.75, duration: {mean: 2s, std: 1s}}
builder: {workers: 4}
gateway: {listen: "127.0.0.1:0"}
`, filepath.Join(dir, "data"), bare, os.Getenv("PATH"), cache, cache), "demo.yaml", configuration.Defaults{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	s, err := stack.Start(ctx, stack.Options{Configuration: config, Logger: w.logger(), Version: "test", Metrics: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w.prometheus.watch(clock{every: time.Second, counts: interval}, map[string]string{"one": s.MetricsURL()})
	w.ready(s)
	play := &scenario.Scenario{Server: s.URL(), Queue: "bookshop", Brokers: s.Brokers(), Secret: s.Secret, Sample: repository, Clone: clone, Seed: 1, Logger: w.logger()}
	changes, err := play.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	ends := map[string]int{}
	for _, c := range changes {
		ends[c.State]++
	}
	if ends[sample.Landed.State] < 10 || ends["rejected"] < 5 {
		t.Errorf("the demo ended otherwise: %v", ends)
	}
	w.prometheus.mu.Lock()
	defer w.prometheus.mu.Unlock()
	for _, a := range w.prometheus.fired {
		t.Errorf("%s fired: %s", a.key(), a.annotations["summary"])
	}
}
