package trie

import (
	"slices"
	"testing"
)

func filled() *Trie {
	t := &Trie{}
	for _, word := range []string{"tea", "ten", "te", "inn", "été"} {
		t.Add(word)
	}
	return t
}

func TestWordsAreFoundByTheirBeginning(t *testing.T) {
	if got := filled().With("te"); !slices.Equal(got, []string{"te", "tea", "ten"}) {
		t.Errorf("got %q", got)
	}
	if got := filled().With("x"); got != nil {
		t.Errorf("got %q", got)
	}
}

func TestABeginningIsNoWord(t *testing.T) {
	if filled().Has("t") || !filled().Has("été") {
		t.Error("a beginning is a word, or a word is none")
	}
}
