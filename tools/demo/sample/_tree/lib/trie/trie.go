// Package trie finds words by their beginnings.
package trie

import (
	"maps"
	"slices"
)

// Trie is a set of words. The zero value is empty.
type Trie struct {
	next map[rune]*Trie
	word bool
}

// Add puts a word into the set.
func (t *Trie) Add(word string) {
	for _, r := range word {
		if t.next == nil {
			t.next = map[rune]*Trie{}
		}
		if t.next[r] == nil {
			t.next[r] = &Trie{}
		}
		t = t.next[r]
	}
	t.word = true
}

// Has says whether a word is in the set.
func (t *Trie) Has(word string) bool {
	t = t.at(word)
	return t != nil && t.word
}

// With lists the words that begin so, sorted.
func (t *Trie) With(beginning string) []string {
	if t = t.at(beginning); t == nil {
		return nil
	}
	return t.collect(beginning, nil)
}

func (t *Trie) at(beginning string) *Trie {
	for _, r := range beginning {
		if t = t.next[r]; t == nil {
			return nil
		}
	}
	return t
}

func (t *Trie) collect(beginning string, words []string) []string {
	if t.word {
		words = append(words, beginning)
	}
	for _, r := range slices.Sorted(maps.Keys(t.next)) {
		words = t.next[r].collect(beginning+string(r), words)
	}
	return words
}
