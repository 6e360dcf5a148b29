package configuration

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSmallestFileTakesAllDefaults(t *testing.T) {
	c := mustParse(t, smallest)
	want := NewQueue("main", fourCores)
	want.Repository = "shop"
	if !reflect.DeepEqual(c.Queues["main"], want) {
		t.Errorf("queue is\n%+v, want\n%+v", c.Queues["main"], want)
	}
	if !reflect.DeepEqual(c.Builder, Builder{Pool: DefaultPool, Workers: 4, Lease: 10 * time.Second, Remember: 1 << 14, Outputs: defaultSharedOutputs}) {
		t.Errorf("builder is %+v", c.Builder)
	}
	if got := c.RepositoryOf(c.Queues["main"]); got != (Repository{Name: "shop", URL: "shop.git", Poll: 2 * time.Second}) {
		t.Errorf("repository is %+v", got)
	}
}

func TestDerivedDefaultsFollowTheirFields(t *testing.T) {
	c := mustParse(t, `version: 1
repositories: {shop: {url: shop.git}}
queues:
  main:
    repository: shop
    workers: 100
    speculation: {threshold: 0.3}
    steps: {timeout: 7m}
    analysis:
      whole_repository_steps: [{name: a, run: [make]}, {name: b, run: [make, b], timeout: 1m}]
  zero: {repository: shop, branch: zero, speculation: {threshold: 0}}
`)
	main := c.Queues["main"]
	if main.Speculation.AbortThreshold != 0.15 || main.Speculation.Candidates != 100 {
		t.Errorf("speculation is %+v, want half of 0.3 and as many candidates as workers", main.Speculation)
	}
	steps := main.Analysis.WholeRepositorySteps
	if steps[0].Timeout != 7*time.Minute || steps[1].Timeout != time.Minute {
		t.Errorf("steps are %+v, want 7m from steps.timeout and 1m of its own", steps)
	}
	if c.Queues["zero"].Speculation.AbortThreshold != 0 {
		t.Error("threshold 0 needs an abort threshold of 0")
	}
}

func TestEmptySectionsTakeDefaults(t *testing.T) {
	c := mustParse(t, "version: 1\nrepositories: {shop: {url: s}}\nqueues:\n  main:\n    repository: shop\n    speculation:\n    steps: ~\n    analysis:\n      whole_repository_steps: null\nbuilder:\n# nothing\n")
	want := NewQueue("main", fourCores)
	want.Repository = "shop"
	if !reflect.DeepEqual(c.Queues["main"], want) {
		t.Errorf("queue is %+v, want %+v", c.Queues["main"], want)
	}
}

func TestPathsResolveAgainstTheFolderOfTheFile(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, "landfall.config.yaml")
	text := `version: 1
data: state/here
repositories:
  a: {url: a.git}
  up: {url: ../up.git}
  absolute: {url: /srv/x.git}
  colon: {url: ./odd:name.git}
  scp: {url: git@example.com:x.git}
  https: {url: "https://git.example.com/x.git"}
  file: {url: "file:///srv/y.git"}
queues: {main: {repository: a}}
`
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(name, fourCores)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"a": filepath.Join(folder, "a.git"), "up": filepath.Join(filepath.Dir(folder), "up.git"),
		"absolute": "/srv/x.git", "colon": filepath.Join(folder, "odd:name.git"),
		"scp": "git@example.com:x.git", "https": "https://git.example.com/x.git", "file": "file:///srv/y.git",
	}
	for _, repository := range c.repositoryNames() {
		if got := c.Repositories[repository].URL; got != want[repository] {
			t.Errorf("%s is %s, want %s", repository, got, want[repository])
		}
	}
	if c.Data != filepath.Join(folder, "state/here") {
		t.Errorf("data is %s", c.Data)
	}

	t.Chdir(folder)
	relative, err := Load("landfall.config.yaml", fourCores)
	if err != nil {
		t.Fatal(err)
	}
	if !filepath.IsAbs(relative.Data) || !filepath.IsAbs(relative.Repositories["a"].URL) {
		t.Errorf("a file named by a relative path gives relative paths: %s", relative.Data)
	}
}

func TestLoadTellsAFileThatCannotBeReadFromOneThatIsWrong(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "none.yaml"), fourCores)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "--config") {
		t.Errorf("a file that is not there: %v", err)
	}
	large := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(large, make([]byte, MaxFileSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	var problems Problems
	if _, err = Load(large, fourCores); !errors.As(err, &problems) || !strings.Contains(err.Error(), "larger than 1MiB") {
		t.Errorf("a file that is too large: %v", err)
	}
	if _, err = Parse([]byte(smallest), "f.yaml", Defaults{}); err == nil || errors.As(err, &problems) {
		t.Errorf("Defaults without workers are the caller's mistake, not the file's: %v", err)
	}
}

func TestNamesAreSortedAndUnknownQueuesAreNamed(t *testing.T) {
	c := mustParse(t, "version: 1\nrepositories: {b: {url: b}, a: {url: a}}\nqueues: {z: {repository: a}, m.1: {repository: b}, c: {repository: a, branch: c}}\n")
	if got := c.QueueNames(); !slices.Equal(got, []string{"c", "m.1", "z"}) {
		t.Errorf("queues %v", got)
	}
	if got := c.repositoryNames(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("repositories %v", got)
	}
	if queue, err := c.Queue("m.1"); err != nil || queue.Name != "m.1" {
		t.Errorf("queue %+v, %v", queue, err)
	}
	if _, err := c.Queue("m-1"); !errors.Is(err, ErrUnknownQueue) || !strings.Contains(err.Error(), "did you mean m.1?") {
		t.Errorf("unknown queue: %v", err)
	}
}

func TestEnvironmentIsListedByName(t *testing.T) {
	e := Environment{Path: "/bin", Variables: map[string]string{"Z": "1", "A": "x=y", "PATHS": "", "A_B": "2"}}
	if got := e.List(); !slices.Equal(got, []string{"A=x=y", "A_B=2", "PATH=/bin", "PATHS=", "Z=1"}) {
		t.Errorf("environment %q", got)
	}
}

func TestAdaptersListsWhatAnAnalysisMayName(t *testing.T) {
	field, _ := reflect.TypeFor[Analysis]().FieldByName("Adapter")
	var names []string
	for _, a := range Adapters() {
		names = append(names, string(a))
	}
	if want := field.Tag.Get("enum"); strings.Join(names, ",") != want {
		t.Errorf("Adapters returns %q, analysis.adapter may be one of %q", names, want)
	}
}
