package stack_test

import (
	"crypto/rand"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"landfall.build/services/gateway/api"
	"landfall.build/tools/client"
)

// sizeBelow returns how many bytes the files below a folder have. Some may go while it looks.
func sizeBelow(dir string) (size int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil {
			size += info.Size()
		}
		return nil
	})
	return size
}

// TestNothingThatIsNeededGoesWhileRetentionRunsAllTheTime: with bounds of nothing for logs, worktrees and waste, looked at all
// the time, changes that conflict and fail land and are rejected as they should, and a pending change's log is whole. What a cancelled
// change leaves is freed.
func TestNothingThatIsNeededGoesWhileRetentionRunsAllTheTime(t *testing.T) {
	together(t)
	r := newRepository(t)
	data := t.TempDir()
	config := configured(t, r, data)
	k := &config.Retention
	k.Every = 10 * time.Millisecond
	k.Logs.Age, k.Logs.FailedAge, k.Logs.Size = time.Nanosecond, time.Nanosecond, 1
	k.Mirrors.Age, k.Mirrors.Waste = time.Hour, 0
	k.Worktrees.Age, k.Worktrees.Size = time.Nanosecond, 1
	s, c := start(t, config)
	defer s.Close()
	await(t, "the gateway is ready", func() bool { _, err := c.Changes(t.Context(), queue, 1); return err == nil })

	// Steps that print more than the end that events carry.
	loud := func(branch, end string) {
		r.git("checkout", "-q", "-B", branch, "main")
		r.write(branch+"/landfall.yaml", `targets: [{name: t, sources: ["*"], steps: [{name: loud, run: [sh, -c, "seq 1 20000; `+end+`"]}]}]`)
		r.commit(branch)
		r.git("push", "-q", "-f", "origin", branch)
	}
	loud("large", "true")
	blob := make([]byte, 20<<20)
	rand.Read(blob)
	r.write("large/large.bin", string(blob))
	r.commit("large file")
	r.git("push", "-q", "origin", "large")
	loud("loud", "false")
	r.git("checkout", "-q", "main")
	land(t, c, "large", "large")
	if _, err := c.Steer(t.Context(), queue, "large", "hold", api.SteerBody{Why: "to see"}); err != nil {
		t.Fatal(err)
	}
	land(t, c, "loud", "loud")
	want := map[string]string{}
	for i := range 12 {
		name, text := fmt.Sprint("c", i), fmt.Sprintf("line %d\n", i)
		want[name] = "landed"
		if i%4 == 3 {
			text, want[name] = "bug\n", "rejected"
		}
		r.branch(name, fmt.Sprintf("f%d/%s.txt", i%3, name), text)
		land(t, c, name, name)
	}
	expect(t, c, "loud", "rejected")
	for i := range 12 {
		name := fmt.Sprint("c", i)
		expect(t, c, name, want[name])
	}
	mirror := filepath.Join(data, "mirrors", "sample.git")
	// The held change is pending: its log is whole, and its commits are in the mirror.
	var log client.Log
	var err error
	awaitThat(t, func() bool { // one that was aborted on the way may have said nothing
		log, err = c.Logs(t.Context(), queue, "large", client.Run{})
		return err == nil && log.Outcome == "passed"
	}, func() string {
		change, _ := c.Change(t.Context(), queue, "large")
		return fmt.Sprintf("the held change's step has not passed: log %+v, %v; change %+v", log, err, change)
	})
	if !log.Complete || log.Deleted != "" || !strings.HasPrefix(log.Output, "1\n2\n") {
		t.Errorf("the log of a pending change is complete: %v, deleted: %q, %.20q", log.Complete, log.Deleted, log.Output)
	}
	if size := sizeBelow(mirror); size < 20<<20 {
		t.Errorf("the mirror with a pending change of 20 MiB has %d bytes", size)
	}
	// The log of a rejected one is gone, and that is said.
	await(t, "the log of a rejected change is deleted, and that is said", func() bool {
		log, err := c.Logs(t.Context(), queue, "loud", client.Run{})
		if err != nil {
			t.Fatal(err)
		}
		return strings.HasPrefix(log.Deleted, "deleted on ") && strings.Contains(log.Deleted, "retention.logs.") && log.Outcome == "failed"
	})
	if _, err := c.Steer(t.Context(), queue, "large", "cancel", api.SteerBody{}); err != nil {
		t.Fatal(err)
	}
	expect(t, c, "large", "cancelled")
	// Two hours pass for all that was used.
	uses := filepath.Join(mirror, "landfall-uses")
	await(t, "the cancelled change's file is freed", func() bool {
		text, err := os.ReadFile(uses)
		if err != nil {
			t.Fatal(err)
		}
		var older strings.Builder
		for line := range strings.Lines(string(text)) {
			at, name, _ := strings.Cut(line, " ")
			seconds, _ := strconv.ParseInt(at, 10, 64)
			fmt.Fprintf(&older, "%d %s", min(seconds, time.Now().Unix()-7200), name)
		}
		if err := os.WriteFile(uses, []byte(older.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond)
		return sizeBelow(mirror) < 1<<20
	})
	// The queue goes on.
	r.branch("after", "f0/after.txt", "after\n")
	land(t, c, "after", "after")
	expect(t, c, "after", "landed")
	if got := len(r.mainline()); got != 1+9+1 {
		t.Errorf("the mainline has %d commits: %q", got, r.mainline())
	}
}
