package release_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"landfall.build/platform/snapshot"
	"landfall.build/tools/release"
	"landfall.build/tools/release/releasetest"
)

const (
	clone  = "../.."
	schema = protoreflect.FullName("landfall.events.v1")
	fact   = string(schema) + ".Fact"
)

// unwritten are facts that the last release does not know, with what keeps this one from writing them.
var unwritten = map[string]string{}

// typesOf returns the types of the events of a release.
func typesOf(t *testing.T, r release.Release) map[string][]string {
	t.Helper()
	content, err := r.File(t.Context(), clone, "events/testdata/descriptor.binpb")
	if err != nil {
		t.Fatal(err)
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(content, set); err != nil {
		t.Fatal(err)
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		t.Fatal(err)
	}
	return release.Types(files, schema)
}

// TestWhatTheLastReleaseWritesAndReadsIsStillThere: this one reads all of it, and writes nothing into its place. Fields and types that are new
// are stepped over and kept by the last release, but for facts.
func TestWhatTheLastReleaseWritesAndReadsIsStillThere(t *testing.T) {
	last := releasetest.Last(t, clone)
	now := release.Types(protoregistry.GlobalFiles, schema)
	before := typesOf(t, last)
	if len(before) < 50 || len(before[fact]) < 10 {
		t.Fatalf("%s has %d types, and %d facts: something else was read", last.Version, len(before), len(before[fact]))
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		for _, field := range before[name] {
			if !slices.Contains(now[name], field) {
				t.Errorf("%s of %s is gone, or is something else: %q", name, last.Version, field)
			}
		}
	}
	for _, field := range now[fact] {
		if !slices.Contains(before[fact], field) && unwritten[field] == "" {
			t.Errorf("an enumerator of %s steps over the fact %q, and the log of speculations never has it: have this release read it and the next one "+
				"write it (decision 0102), and say in unwritten what keeps this one from it", last.Version, field)
		}
	}
}

// TestSnapshotsOfAnotherMeaningHaveAnotherFormat: the last release would open those of its own format, and lose the fields that it does
// not know.
func TestSnapshotsOfAnotherMeaningHaveAnotherFormat(t *testing.T) {
	last := releasetest.Last(t, clone)
	newest := 0
	for format := snapshot.OldestFormat; format <= snapshot.Format; format++ {
		name := fmt.Sprintf("platform/snapshot/testdata/format-%d.txt", format)
		before, err := last.File(t.Context(), clone, name)
		if err != nil {
			continue // it is newer
		}
		newest = format
		now, err := os.ReadFile(filepath.Join(clone, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(before, now) {
			t.Errorf("%s is another one than that of %s: raise snapshot.Format, and give the file back what it had there", name, last.Version)
		}
	}
	if newest == 0 {
		t.Errorf("no format from %d to %d is one of %s: it opens nothing of it", snapshot.OldestFormat, snapshot.Format, last.Version)
	}
}

// TestMigrationsOfTheLastReleaseAreUnchanged: historians of both refuse tables that were made by another text.
func TestMigrationsOfTheLastReleaseAreUnchanged(t *testing.T) {
	last := releasetest.Last(t, clone)
	files, err := filepath.Glob(clone + "/schemas/clickhouse/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	same := 0
	for _, file := range files {
		before, err := last.File(t.Context(), clone, "schemas/clickhouse/"+filepath.Base(file))
		if err != nil {
			continue
		}
		now, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if same++; !bytes.Equal(before, now) {
			t.Errorf("%s differs from that of %s", file, last.Version)
		}
	}
	if same == 0 {
		t.Error("no migration was compared")
	}
}

func TestTheCompatibilityIsWhatTheCodeHas(t *testing.T) {
	c := release.Of("1.2.3")
	if c.Version != "1.2.3" || c.Snapshots.Newest != snapshot.Format || c.Configuration.Oldest != 1 || c.HistoryMigrations < 6 || len(c.Schemes) < 6 {
		t.Errorf("%+v", c)
	}
	if !slices.Contains(c.Events.Types[fact], "1 change_admitted ChangeAdmitted") && len(c.Events.Types[fact]) < 10 {
		t.Errorf("facts: %q", c.Events.Types[fact])
	}
	var out bytes.Buffer
	if err := c.Write(&out); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"landfall 1.2.3\n", "releases since " + release.OldestBeside, "digest " + c.Events.Digest, "manifest/"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%q is missing in\n%s", part, out.String())
		}
	}
	text, err := json.Marshal(c)
	var back release.Compatibility
	if err == nil {
		err = json.Unmarshal(text, &back)
	}
	if err != nil || back.Events.Digest != c.Events.Digest || len(back.Events.Types) != len(c.Events.Types) {
		t.Errorf("%v, %s", err, text)
	}
}

// TestTheLastReleaseIsTheNewestTagBehindTheHead, not a tag on it, nor one on another branch.
func TestTheLastReleaseIsTheNewestTagBehindTheHead(t *testing.T) {
	dir := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=A", "-c", "user.email=a@example.com"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	commits := 0
	commit := func() string {
		commits++
		run("commit", "--quiet", "--allow-empty", "-m", fmt.Sprint(commits))
		return run("rev-parse", "HEAD")
	}
	if _, err := release.Last(t.Context(), dir); !errors.Is(err, release.ErrNoHistory) {
		t.Errorf("outside of a clone: %v", err)
	}
	run("init", "--quiet", "--initial-branch=main")
	commit()
	if _, err := release.Last(t.Context(), dir); err == nil || errors.Is(err, release.ErrNoHistory) {
		t.Errorf("a whole history without the pinned commit: %v", err)
	}
	first := commit()
	run("tag", "v0.9.0")
	tenth := commit()
	run("tag", "-a", "-m", "ten", "v0.10.0")
	run("checkout", "--quiet", "-b", "other", first)
	commit()
	run("tag", "v0.11.0")
	run("checkout", "--quiet", "main")
	commit()
	run("tag", "v1.0.0")
	if got, err := release.Last(t.Context(), dir); err != nil || got != (release.Release{Version: "0.10.0", Commit: tenth}) {
		t.Errorf("%+v, %v; want 0.10.0 at %s", got, err, tenth)
	}
	shallow := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "git", "clone", "--quiet", "--depth=1", "--no-tags", "file://"+dir, shallow).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := release.Last(t.Context(), shallow); !errors.Is(err, release.ErrNoHistory) || !strings.Contains(err.Error(), "--unshallow") {
		t.Errorf("a shallow clone: %v", err)
	}
}
