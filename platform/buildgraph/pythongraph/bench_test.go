package pythongraph

import (
	"fmt"
	"testing"

	"landfall.build/platform/buildgraph/gittree"

	"landfall.build/engine/targets"
)

// benchTree is a workspace of uv with 1,000 packages of six modules and a test each.
func benchTree() folderTree {
	tree := folderTree{blobs: map[string][]byte{}}
	add := func(path, content string) {
		object := objectOf(content)
		tree.blobs[object] = []byte(content)
		tree.entries = append(tree.entries, gittree.Entry{Path: path, Mode: 0o100644, Kind: "blob", Object: object})
	}
	add("pyproject.toml", "[project]\nname = \"all\"\n[tool.uv.workspace]\nmembers = [\"packages/*\"]\n")
	lock := "version = 1\n"
	for n := range 40 {
		lock += fmt.Sprintf("[[package]]\nname = \"ext%d\"\nversion = \"1\"\nsource = { registry = \"https://example.org\" }\n", n)
	}
	for n := range 1000 {
		name := fmt.Sprintf("p%d", n)
		dir := "packages/" + name
		first, second := n*7/10, n/2
		lock += fmt.Sprintf("[[package]]\nname = %q\nversion = \"1\"\nsource = { editable = %q }\ndependencies = [{ name = \"p%d\" }, { name = \"p%d\" }, { name = \"ext%d\" }]\n", name, dir, first, second, n%40)
		add(dir+"/pyproject.toml", fmt.Sprintf("[project]\nname = %q\ndependencies = [\"p%d\", \"p%d\", \"ext%d\"]\n", name, first, second, n%40))
		add(dir+"/src/"+name+"/__init__.py", "from .a import run\n")
		for i, module := range []string{"a", "b", "c", "d", "e"} {
			add(dir+"/src/"+name+"/"+module+".py", fmt.Sprintf("import os, sys, json, typing, logging\nimport dataclasses\nfrom ext%d import thing\nfrom p%d.a import run\nimport p%d.%s\nfrom . import %c\n# %s\n",
				n%40, first, second, module, "bcdea"[i], dir))
		}
		add(dir+"/tests/test_"+name+".py", "import pytest\nfrom "+name+" import a, b, c\n")
		add(dir+"/tests/conftest.py", "import pytest\n# "+dir+"\n")
		add(dir+"/README.md", dir+"\n")
	}
	add("uv.lock", lock)
	return tree
}

// BenchmarkFull is the first analysis of a repository.
func BenchmarkFull(b *testing.B) {
	tree := benchTree()
	b.ReportAllocs()
	for b.Loop() {
		graph, err := newLoader(b, Options{}).Load(b.Context(), "", tree)
		if err != nil {
			b.Fatal(err)
		}
		nodes, edges := graph.Size()
		b.ReportMetric(float64(nodes), "nodes")
		b.ReportMetric(float64(edges), "edges")
	}
}

// BenchmarkNextTree is the analysis of a tree that differs from the one before in one module, with what it affects.
func BenchmarkNextTree(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"another text", "import os, sys, json, typing, logging\nimport dataclasses\nfrom ext20 import thing\nfrom p350.a import run\nimport p250.a\nfrom . import b\n# %d\n"},
		{"another import", "import os, sys\nimport name%d\n"},
	} {
		b.Run(c.name, func(b *testing.B) {
			tree := benchTree()
			loader := newLoader(b, Options{})
			base, err := loader.Load(b.Context(), "", tree)
			if err != nil {
				b.Fatal(err)
			}
			n := 0
			for b.Loop() {
				n++
				content := fmt.Sprintf(c.text, n)
				next := folderTree{entries: append([]gittree.Entry{}, tree.entries...), blobs: tree.blobs}
				for i := range next.entries {
					if next.entries[i].Path == "packages/p500/src/p500/a.py" {
						next.entries[i].Object = objectOf(content)
						next.blobs[objectOf(content)] = []byte(content)
					}
				}
				head, err := loader.Load(b.Context(), "", next)
				if err != nil {
					b.Fatal(err)
				}
				targets.Delta(base, head)
				base = head
			}
		})
	}
}
