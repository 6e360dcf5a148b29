package gograph

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"landfall.build/engine/targets"
)

func TestFactsOfAFile(t *testing.T) {
	f := parseGo([]byte(`// Copyright

//go:build linux && (amd64 || !cgo)
// +build ignored

// Package p.
package p

// #cgo CFLAGS: -I${SRCDIR}/../inc -DX=1
// #cgo linux LDFLAGS: -L../lib -lm ./own/x.a
// #include "../more/x.h"
// #include "own.h"
// #include <stdio.h>
import "C"

import (
	"embed"
	x "b/x"
	_ "a/y"
	. "b/x"
)

//go:embed one/* "two words" `+"`three`"+`
	//go:embed all:four
//go:embedded no
var files embed.FS
`), false)
	want := "[a/y b/x embed] [all:four one/* three two words] [../inc ../lib own/x.a] [../more/x.h own.h stdio.h] true linux && (amd64 || !cgo) false"
	if got := strings.TrimSpace(fmt.Sprintln(f.imports, f.embeds, f.reaches, f.includes, f.cgo, f.constraint, f.unread)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	old := parseGo([]byte("// +build linux darwin\n// +build !cgo\n\npackage p\n"), false)
	if old.constraint != "(linux || darwin) && !cgo" {
		t.Errorf("+build lines are %s", old.constraint)
	}
}

// FuzzFacts: whatever a file holds, its facts survive the disk, and never depend
// on anything but the content.
func FuzzFacts(f *testing.F) {
	for _, content := range sample {
		f.Add([]byte(content), false)
	}
	f.Add([]byte("package p\nimport \"embed\"\n//go:embed \"a\\x00\" `\n"), false)
	f.Add([]byte(outsideTest), false)
	f.Add([]byte("package p\nvar x = \"../a/\" + y + `../%s` + filepath.Join(\"..\", \"b\", \"*\")\n"), false)
	f.Add([]byte("#include \"../x\"\n # include \"../../y\n"), true)
	f.Fuzz(func(t *testing.T, content []byte, foreign bool) {
		key := factKey{objectOf(string(content)), foreign, !foreign}
		first, again := parseFacts(key, content), parseFacts(key, content)
		stored := 0
		err := readSegment(segmentOf([]factKey{key}, []*facts{first}), func(k factKey, read *facts) {
			stored++
			if k != key || describe(read) != describe(first) {
				t.Errorf("%v %s became %v %s", key, describe(first), k, describe(read))
			}
		})
		if err != nil || stored != 1 || describe(first) != describe(again) {
			t.Errorf("%d facts read, %v", stored, err)
		}
		for _, list := range [][]string{first.imports, first.embeds, first.reaches, first.outside, first.beside} {
			if !slices.IsSorted(list) || len(list) > maxImports {
				t.Errorf("%q is not in order", list)
			}
		}
	})
}

func describe(f *facts) string {
	return fmt.Sprintf("%q %q %q %q %q %q %v %v %v %q %v %v", f.imports, f.embeds, f.reaches, f.includes, f.outside, f.beside, f.program, f.cgo, f.computed, f.constraint, f.unread, f.expression != nil)
}

// FuzzSegment: no content makes reading fail otherwise than by an error, or take
// memory beyond its own size.
func FuzzSegment(f *testing.F) {
	f.Add(segmentOf(nil, nil))
	f.Add(segmentOf([]factKey{{object: "a", foreign: true}}, []*facts{{imports: []string{"x"}}}))
	f.Fuzz(func(t *testing.T, content []byte) {
		readSegment(content, func(factKey, *facts) {})
		d := segmentDecoder{rest: content, shared: map[string]string{}}
		for !d.broken && len(d.rest) > 0 {
			d.texts()
		}
	})
}

// blobCounter counts the Go and assembly files that are read.
type blobCounter struct {
	memoryTree
	goFiles atomic.Int64
}

func (c *blobCounter) Blob(ctx context.Context, object string, max int64) ([]byte, error) {
	content, err := c.memoryTree.Blob(ctx, object, max)
	if bytes.Contains(content, []byte("package ")) || bytes.Contains(content, []byte("TEXT")) {
		c.goFiles.Add(1)
	}
	return content, err
}

func loadCounting(t *testing.T, facts *Facts, tree memoryTree) (*targets.Graph, int) {
	t.Helper()
	loader, err := NewLoader(Options{}, Memory{}, facts)
	if err != nil {
		t.Fatal(err)
	}
	counted := &blobCounter{memoryTree: tree}
	graph, err := loader.Load(t.Context(), "", counted)
	if err != nil {
		t.Fatal(err)
	}
	return graph, int(counted.goFiles.Load())
}

func openFacts(t *testing.T, dir string, disk int64) *Facts {
	t.Helper()
	facts, err := OpenFacts(dir, 64<<20, disk, quiet())
	if err != nil {
		t.Fatal(err)
	}
	return facts
}

func TestFactsAreFoundOnceAndOnlyForWhatChanged(t *testing.T) {
	dir := t.TempDir()
	facts := openFacts(t, dir, 1<<20)
	graph, reads := loadCounting(t, facts, sample)
	if reads == 0 {
		t.Fatal("nothing was read")
	}
	facts.Close()
	facts = openFacts(t, dir, 1<<20)
	again, reads := loadCounting(t, facts, sample)
	if reads != 0 || !same(graph, again) {
		t.Errorf("after a restart %d files are read", reads)
	}
	if _, reads = loadCounting(t, facts, sample.with(memoryTree{"a/a.go": "package other\n"})); reads != 1 {
		t.Errorf("for one edit %d files are read", reads)
	}
}

func TestDamagedFactsAreFoundAnew(t *testing.T) {
	dir := t.TempDir()
	facts := openFacts(t, dir, 1<<20)
	graph, _ := loadCounting(t, facts, sample)
	facts.Close()
	files, _ := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix))
	if len(files) != 1 {
		t.Fatalf("files %v", files)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	for name, content := range map[string][]byte{"flipped": flipped, "cut": whole[:len(whole)/2], "empty": {}, "of another version": append([]byte("other"), whole...)} {
		if err := os.WriteFile(files[0], content, 0o666); err != nil {
			t.Fatal(err)
		}
		again, reads := loadCounting(t, openFacts(t, dir, 1<<20), sample)
		if reads == 0 || !same(graph, again) {
			t.Errorf("%s: %d files are read, same graph: %v", name, reads, same(graph, again))
		}
		if _, err := os.Stat(files[0]); err == nil {
			t.Errorf("%s: the damaged file is still there", name)
		}
	}
}

func TestFactsOnDiskStayWithinTheirBound(t *testing.T) {
	dir := t.TempDir()
	const bound = 20_000
	facts := openFacts(t, dir, bound)
	for i := range 50 {
		for j := range 10 {
			facts.put(factKey{object: fmt.Sprint(i, j)}, &facts0)
		}
		facts.flush(1)
	}
	total, files := folderSize(t, dir)
	if total > bound || total < bound/4 {
		t.Errorf("%d bytes on disk", total)
	}
	old := filepath.Join(dir, "crashed"+temporarySuffix)
	if err := os.WriteFile(old, []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	os.Chtimes(old, time.Time{}, time.Now().Add(-2*abandonedAfter))
	openFacts(t, dir, bound)
	if _, after := folderSize(t, dir); files > maxSegments && after > 2 {
		t.Errorf("%d files were not joined but became %d", files, after)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("what a crashed writer left is still there")
	}
	os.RemoveAll(dir)
	facts.put(factKey{object: "x"}, &facts0)
	facts.Close() // The folder is gone: a warning, no more.
}

var facts0 = facts{imports: []string{strings.Repeat("x", 50)}}

func folderSize(t *testing.T, dir string) (total int64, files int) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	return total, len(entries)
}

func TestFactsServeSeveralLoadersAtOnce(t *testing.T) {
	facts := openFacts(t, t.TempDir(), 1<<20)
	want := load(t, sample)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if graph, _ := loadCounting(t, facts, sample); !same(graph, want) {
				t.Error("another graph")
			}
		})
	}
	all.Wait()
	facts.Close()
}
