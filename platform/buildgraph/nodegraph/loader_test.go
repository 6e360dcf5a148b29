package nodegraph

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"landfall.build/events/seedtest"
	"landfall.build/platform/buildgraph/gittree"
)

// shuffled gives the entries of a tree in another order, with an entry for a folder among them.
type shuffled struct {
	memoryTree
	random *rand.Rand
}

func (s shuffled) Entries(ctx context.Context) ([]gittree.Entry, error) {
	entries, err := s.memoryTree.Entries(ctx)
	entries = append(entries, gittree.Entry{Path: "packages", Mode: 0o40000, Kind: "tree", Object: "folder"})
	s.random.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
	return entries, err
}

func TestTheOrderOfEntriesDoesNotMatter(t *testing.T) {
	random := seedtest.Random(t)
	want := load(t, sample)
	for range 5 {
		if !same(want, load(t, shuffled{sample, random})) {
			t.Fatal("another order of entries gives another graph")
		}
	}
}

func TestARememberedLoadEqualsAFreshOne(t *testing.T) {
	random := seedtest.Random(t)
	loader := newLoader(t, Options{})
	tree := sample
	edit := randomEdit("packages", "app", "lib", "util", "tool", "new")
	compared := 0
	for range 60 {
		next := tree.with(edit(random))
		if !next.sound() {
			continue
		}
		remembered, err := loader.Load(t.Context(), "", next)
		fresh, freshErr := newLoader(t, Options{}).Load(t.Context(), "", next)
		if (err == nil) != (freshErr == nil) {
			t.Fatalf("remembered: %v, fresh: %v", err, freshErr)
		}
		if err != nil {
			continue
		}
		compared++
		if !slices.Equal(remembered.Unknown(), fresh.Unknown()) || len(fresh.Unknown()) == 0 && !same(remembered, fresh) {
			t.Fatalf("what was loaded before changes the graph of %q", next)
		}
		if len(fresh.Unknown()) == 0 {
			tree = next
		}
	}
	if compared < 10 {
		t.Errorf("only %d graphs were compared", compared)
	}
}

// brokenTree fails at one blob.
type brokenTree struct {
	memoryTree
	object string
}

var errBroken = errors.New("the disk is gone")

func (b brokenTree) Blob(ctx context.Context, object string, max int64) ([]byte, error) {
	if object == b.object {
		return nil, errBroken
	}
	return b.memoryTree.Blob(ctx, object, max)
}

func TestAFailureToReadIsNoVerdict(t *testing.T) {
	for _, path := range []string{"packages/app/package.json", "package-lock.json", "packages/app/src/index.ts", "scripts/lib/steps.js"} {
		_, err := newLoader(t, Options{}).Load(t.Context(), "", brokenTree{sample, objectOf(sample[path])})
		if _, invalid := errors.AsType[*Invalid](err); !errors.Is(err, errBroken) || invalid {
			t.Errorf("%s cannot be read: %v", path, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newLoader(t, Options{}).Load(ctx, "", sample); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled load gives %v", err)
	}
}
