package adopt

import (
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestInitSaysWhatItIsDoing: a large repository, or Bazel, takes a minute.
func TestInitSaysWhatItIsDoing(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	bare, clone := filepath.Join(folder, "shop.git"), filepath.Join(folder, "shop")
	for _, argv := range [][]string{
		{"init", "-q", "--bare", "-b", "main", bare}, {"clone", "-q", bare, clone},
		{"-C", clone, "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "begin"},
		{"-C", clone, "push", "-q", "origin", "HEAD:main"},
	} {
		if out, err := exec.Command("git", argv...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", argv, err, out)
		}
	}
	var told []string
	open := 0
	r := run{options: options{yes: true, workers: 1, data: filepath.Join(folder, "data"), command: "true"}, out: io.Discard, logger: slog.New(slog.DiscardHandler)}
	r.during = func(what string) func() {
		told = append(told, what)
		open++
		return func() { open-- }
	}
	if err := r.run(t.Context(), clone); err != nil {
		t.Fatal(err)
	}
	r.check = true
	if err := r.run(t.Context(), clone); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"fetching " + bare, "looking at the repository and this machine", "reading the targets of main",
		"looking which of the last commits would have conflicted with everything", "looking at what the queues of " + filepath.Join(clone, configurationFile) + " see",
	}
	if !slices.Equal(told, want) || open != 0 {
		t.Errorf("%d are open of %q, want %q", open, told, want)
	}
}
