package sample

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

//go:embed all:_tree
var files embed.FS

// chapters are the commits that the bookshop was built by, before anybody had a queue. Each is green.
var chapters = []struct {
	author Person
	title  string
	// paths are prefixes of what the commit adds.
	paths []string
}{
	{Ada, "Begin with money and texts", []string{"go.mod", "README.md", "landfall.yaml", "lib/money/", "lib/text/"}},
	{Emil, "Check the numbers of books", []string{"lib/checksum/"}},
	{Ada, "Count working days", []string{"lib/calendar/"}},
	{Chen, "Add statistics, ways and a cache", []string{"lib/stats/", "lib/graph/", "lib/lru/"}},
	{Dora, "Add words, matrices and numerals", []string{"lib/trie/", "lib/matrix/", "lib/roman/"}},
	{Fatima, "List books and price them", []string{"shop/catalog/", "shop/pricing/"}},
	{Fatima, "Fill carts, write invoices", []string{"shop/cart/", "shop/invoice/", "cmd/checkout/"}},
	{Goran, "Deliver parcels, find books", []string{"shop/delivery/", "shop/search/", "cmd/find/"}},
	{Hana, "Count the stock and the sales", []string{"shop/stock/", "shop/sales/", "cmd/sales/"}},
	{Chen, "Forecast the demand", []string{"lab/forecast/"}},
}

// content reads the sample's files. The module's file has another name here, as a folder with it would be
// no part of this module.
func content() (tree, error) {
	out := tree{}
	err := fs.WalkDir(files, "_tree", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := files.ReadFile(path)
		name := strings.TrimPrefix(path, "_tree/")
		if name == "go.mod.txt" {
			name = "go.mod"
		}
		out[name] = string(text)
		return err
	})
	return out, err
}

// history is the mainline before the queue, as edits.
func history() ([]Commit, []Person, error) {
	all, err := content()
	if err != nil {
		return nil, nil, err
	}
	var commits []Commit
	var authors []Person
	taken := 0
	for _, chapter := range chapters {
		c := Commit{Title: chapter.title}
		for path, text := range all {
			if slices.ContainsFunc(chapter.paths, func(prefix string) bool { return strings.HasPrefix(path, prefix) }) {
				c.Edits = append(c.Edits, Edit{Path: path, New: text})
			}
		}
		slices.SortFunc(c.Edits, func(a, b Edit) int { return strings.Compare(a.Path, b.Path) })
		taken += len(c.Edits)
		commits, authors = append(commits, c), append(authors, chapter.author)
	}
	if taken != len(all) {
		return nil, nil, fmt.Errorf("the sample's history has %d files, and the sample %d", taken, len(all))
	}
	return commits, authors, nil
}
