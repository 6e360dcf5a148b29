package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"landfall.build/engine/targets"
	"landfall.build/events/seedtest"
	"landfall.build/tools/audit/audittest"
)

// TestTheAuditRunsNoTwoStepsThatTakeTheSame: each of them fails beside the other.
func TestTheAuditRunsNoTwoStepsThatTakeTheSame(t *testing.T) {
	for takes, machine := range map[string]string{"exclusive: [db]": "{}", "resources: {licences: 2}": "{licences: 3}", "resources: {licences: 1}": "{licences: 1}"} {
		p := audittest.New(t)
		lock := filepath.Join(t.TempDir(), "taken")
		var targets strings.Builder
		for i := range 4 {
			fmt.Fprintf(&targets, "- {name: t%d, steps: [{name: test, run: [sh, -c, 'mkdir %s && sleep 0.2 && rmdir %[2]s'], %s}]}\n", i, lock, takes)
		}
		p.Commit("begin", map[string]string{"landfall.yaml": "targets:\n" + targets.String()})
		config := filepath.Join(t.TempDir(), "landfall.config.yaml")
		text := "version: 1\ndata: " + t.TempDir() + "\nrepositories:\n  shop: {url: " + p.Dir + "}\nqueues:\n  shop: {repository: shop, analysis: {adapter: manifest}}\n" +
			"builder: {resources: " + machine + "}\n"
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, _, err := run(t, "--repo", p.Dir, "--config", config, "--retries", "0", "--workers", "4")
		if err != nil || !strings.Contains(out, "1 of 1 commits are green") {
			t.Errorf("%s of %s: %v\n%s", takes, machine, err, out)
		}
	}
}

// TestWhatIsTakenTogetherFitsTheMachine, whatever order the tasks end in, and none is left.
func TestWhatIsTakenTogetherFitsTheMachine(t *testing.T) {
	random := seedtest.Random(t)
	for range 200 {
		a := &agenda{has: map[string]int{"r0": 3}}
		for i := range random.IntN(12) {
			var needs targets.Needs
			if random.IntN(2) == 0 {
				needs.Exclusive = []string{fmt.Sprint("e", random.IntN(2))}
			}
			if random.IntN(2) == 0 {
				needs.Resources = []targets.Resource{{Name: fmt.Sprint("r", random.IntN(2)), Amount: 1 + random.Int64N(4)}}
			}
			a.add(&task{target: targets.Target{Name: fmt.Sprint("//t", i), Commands: []targets.Command{{Name: "test", Needs: needs}}}})
		}
		var running []*task
		for len(a.waiting)+len(running) > 0 {
			if next := a.take(nil); next != nil {
				running = append(running, next)
			} else if len(running) == 0 {
				t.Fatalf("%d tasks wait for nothing", len(a.waiting))
			} else {
				i := random.IntN(len(running))
				a.release(running[i])
				running = append(running[:i], running[i+1:]...)
			}
			alone, sum := map[string]int{}, map[string]int64{}
			for _, of := range running {
				for _, c := range of.target.Commands {
					for _, name := range c.Needs.Exclusive {
						alone[name]++
					}
					for _, r := range c.Needs.Resources {
						alone[r.Name], sum[r.Name] = alone[r.Name]+1, sum[r.Name]+r.Amount
					}
				}
			}
			for name, n := range alone {
				if n > 1 && (name != "r0" || sum[name] > 3) {
					t.Fatalf("%d take %s together, %d of it", n, name, sum[name])
				}
			}
		}
	}
}
