package page_test

import (
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestEveryPageOfTheDemoIsSound at three sizes in both themes: as the queue was in the middle of it, and as it was left. The pictures of it
// (LOOKS) are for a person; nothing is compared, for each demo is another.
func TestEveryPageOfTheDemoIsSound(t *testing.T) {
	if os.Getenv("LANDFALL_TEST_SLOW") == "" {
		t.Skip("make test-all looks at the demo")
	}
	w := &world{t: t, config: filepath.Join(t.TempDir(), "kept")}
	demo := exec.CommandContext(t.Context(), binary, "demo", "--keep", w.config)
	if out, err := demo.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w.config = filepath.Join(w.config, "landfall.config.yaml")
	w.start()
	var list struct {
		Changes []struct {
			Change, State string
			FinishedAt    time.Time `json:"finished_at"`
		}
	}
	if err := json.Unmarshal([]byte(w.get("/v1/queues/bookshop/changes?limit=200")), &list); err != nil {
		t.Fatal(err)
	}
	ends := map[string][]time.Time{}
	ids := map[string]string{}
	for _, c := range list.Changes {
		ends[c.State] = append(ends[c.State], c.FinishedAt)
		ids[c.State] = c.Change
	}
	slices.SortFunc(ends["landed"], time.Time.Compare)
	if len(ends["landed"]) < 20 || len(ends["rejected"]) < 3 {
		t.Fatalf("the demo ended with %v", list)
	}
	at := "at=" + url.QueryEscape(ends["landed"][len(ends["landed"])/3].UTC().Format(time.RFC3339Nano))
	r := newReader(t, w)
	for _, p := range []struct{ name, path, text string }{
		{"queues-then", "/?" + at, "in the queue"},
		{"queue-then", "/queues/bookshop?" + at, "in the queue"},
		{"graph-then", "/queues/bookshop?view=graph&" + at, "Point at a change"},
		{"change-then", "/queues/bookshop/changes/" + url.PathEscape(list.Changes[0].Change) + "?" + at, "This is the past"},
		{"workers-then", "/pools/default?minutes=2&" + at, "Workers of pool default"},
		{"services-then", "/services?" + at, "claimed"},
		{"queues", "/", "last landing"},
		{"queue", "/queues/bookshop", "last landing"},
		{"change-landed", "/queues/bookshop/changes/" + url.PathEscape(ids["landed"]), "On the mainline"},
		{"change-rejected", "/queues/bookshop/changes/" + url.PathEscape(ids["rejected"]), "What happened"},
		{"workers", "/pools/default", "Workers of pool default"},
		{"flakes", "/queues/bookshop/flakes", "rejected changes"},
		{"models", "/queues/bookshop/models", "Models"},
		{"figures", "/queues/bookshop/analytics", "What if?"},
		{"services", "/services", "Partitions"},
		{"dead-letters", "/dead-letters", "There are none"},
		{"access", "/access?queue=bookshop", "Access"},
	} {
		r.eachLook("demo-"+p.name, func() {
			r.open(p.path)
			r.see(p.text)
			if strings.HasPrefix(p.path, "/queues/bookshop?") {
				r.until("the changes are shown", func() bool { return evaluate[bool](r, `!!document.querySelector(".row, a.node")`) })
			}
		})
	}
}
