package manifest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/gittree"
)

// memoryTree is a tree of files by path. A content that starts with "mode " and
// six octal digits has that mode; others are plain files.
type memoryTree map[string]string

var errNoBlob = errors.New("no such blob")

func objectOf(content string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(content)))[:40] }

func (m memoryTree) Entries(context.Context) ([]gittree.Entry, error) {
	var entries []gittree.Entry
	for path, content := range m {
		e := gittree.Entry{Path: path, Mode: 0o100644, Kind: "blob", Object: objectOf(content)}
		fmt.Sscanf(content, "mode %o", &e.Mode)
		if e.Mode == 0o160000 {
			e.Kind = "commit"
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func (m memoryTree) Blob(_ context.Context, object string, max int64) ([]byte, error) {
	for _, content := range m {
		if objectOf(content) == object {
			if int64(len(content)) > max {
				return nil, fmt.Errorf("blob of %d bytes: %w", len(content), gittree.ErrTooLarge)
			}
			return []byte(content), nil
		}
	}
	return nil, errNoBlob
}

// id stands for git's tree id.
func (m memoryTree) id() string {
	var all strings.Builder
	for _, path := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&all, "%q %q\n", path, m[path])
	}
	return objectOf(all.String())
}

// with returns the tree with files changed; an empty content removes a file.
func (m memoryTree) with(changes memoryTree) memoryTree {
	changed := maps.Clone(m)
	for path, content := range changes {
		if content == "" {
			delete(changed, path)
		} else {
			changed[path] = content
		}
	}
	return changed
}

func mustLoad(t testing.TB, tree memoryTree) *targets.Graph {
	t.Helper()
	graph, err := Load(t.Context(), tree)
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	return graph
}

// changed names the targets that differ from one tree to the next, a "-" before
// those that are gone.
func changed(t testing.TB, base, head memoryTree) []string {
	t.Helper()
	analysis := targets.Delta(mustLoad(t, base), mustLoad(t, head))
	var names []string
	for _, v := range analysis.Affected {
		names = append(names, v.Name)
	}
	for _, name := range analysis.Deleted {
		names = append(names, "-"+name)
	}
	return names
}
