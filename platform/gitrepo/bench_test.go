package gitrepo

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

const benchPerDir = 10

// benchFiles is how many files the repository of benchRepo has: LANDFALL_BENCH_FILES, else 10,000.
var benchFiles = func() int {
	if n, err := strconv.Atoi(os.Getenv("LANDFALL_BENCH_FILES")); err == nil && n > 0 {
		return n
	}
	return 10_000
}()

// benchRepo has benchFiles files, ten in each directory, and n commits that each change one.
func benchRepo(b *testing.B, n int) (*fixture, []string) {
	b.Helper()
	f := newFixture(b)
	for i := range benchFiles {
		f.write(benchPath(i), fmt.Sprintf("package p%d\n\nconst x = %d\n", i/benchPerDir, i))
	}
	ids := []string{f.commit("start")}
	for i := range n {
		f.write(benchPath(i*997%benchFiles), fmt.Sprintf("changed %d\n", i))
		ids = append(ids, f.commit("change"))
	}
	f.publish("main")
	b.ReportAllocs()
	b.ResetTimer()
	return f, ids
}

func benchPath(i int) string {
	return fmt.Sprintf("area%d/part%d/file%d.go", i/benchPerDir/50, i/benchPerDir, i)
}

func BenchmarkTreeOfTheNextCommit(b *testing.B) {
	f, ids := benchRepo(b, 8)
	for i := 0; b.Loop(); i++ {
		if _, err := f.repo.Tree(b.Context(), ids[i%len(ids)]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTreeReadAnew(b *testing.B) {
	f, ids := benchRepo(b, 0)
	for b.Loop() {
		f.repo.trees = newCache[string, *treeNode](defaultTreeMem)
		if _, err := f.repo.Tree(b.Context(), ids[0]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDiffTrees(b *testing.B) {
	f, ids := benchRepo(b, 8)
	for b.Loop() {
		f.repo.trees = newCache[string, *treeNode](defaultTreeMem)
		if changes, err := f.repo.DiffTrees(b.Context(), ids[0], ids[8]); err != nil || len(changes) != 8 {
			b.Fatal(changes, err)
		}
	}
}

func BenchmarkMergeTrees(b *testing.B) {
	f, ids := benchRepo(b, 2)
	base, ours := f.treeOf(ids[0]), f.treeOf(ids[1])
	f.git("checkout", "--quiet", "--detach", ids[0])
	f.write(benchPath(5000), "theirs\n")
	other := f.commit("theirs")
	f.publish("theirs")
	theirs := f.treeOf(other)
	b.ResetTimer()
	for b.Loop() {
		f.repo.merges = newCache[mergeKey, mergeOutcome](maxMerges)
		if _, conflict, err := f.repo.MergeTrees(b.Context(), base, ours, theirs); err != nil || conflict != nil {
			b.Fatal(conflict, err)
		}
	}
}

func BenchmarkCheckoutOfTheNextCommit(b *testing.B) {
	f, ids := benchRepo(b, 8)
	w := benchWorktree(b, f)
	for i := 0; b.Loop(); i++ {
		if err := w.Checkout(b.Context(), ids[i%len(ids)]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheckoutFromNothing(b *testing.B) {
	f, ids := benchRepo(b, 0)
	w := benchWorktree(b, f)
	for b.Loop() {
		b.StopTimer()
		if err := w.clear(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if err := w.Checkout(b.Context(), ids[0]); err != nil {
			b.Fatal(err)
		}
	}
}

func benchWorktree(b *testing.B, f *fixture) *Worktree {
	b.Helper()
	dir, err := os.MkdirTemp(b.TempDir(), "w")
	if err != nil {
		b.Fatal(err)
	}
	w, err := f.repo.AddWorktree(b.Context(), filepath.Join(dir, "tree"))
	if err != nil {
		b.Fatal(err)
	}
	return w
}

func BenchmarkWriteCommit(b *testing.B) {
	f, ids := benchRepo(b, 0)
	tree := f.treeOf(ids[0])
	who := Identity{Name: "Ada", Email: "ada@example.com", Date: "1700000000 +0000"}
	for i := 0; b.Loop(); i++ {
		if _, err := f.repo.WriteCommit(b.Context(), CommitSpec{Tree: tree, Parents: ids, Author: who, Committer: who, Message: fmt.Sprint(i)}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPush(b *testing.B) {
	f, ids := benchRepo(b, 0)
	head := ids[0]
	for b.Loop() {
		next := f.children(head, 1)[0]
		if err := f.repo.Push(b.Context(), "main", head, next); err != nil {
			b.Fatal(err)
		}
		head = next
	}
}

func BenchmarkRemoteHead(b *testing.B) {
	f, _ := benchRepo(b, 0)
	for b.Loop() {
		if _, err := f.repo.RemoteHead(b.Context(), "main"); err != nil {
			b.Fatal(err)
		}
	}
}
