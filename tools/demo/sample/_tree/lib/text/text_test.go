package text

import (
	"slices"
	"testing"
)

func TestSlugsHaveSingleDashes(t *testing.T) {
	if got := Slug("  War & Peace, vol. 2 "); got != "war-peace-vol-2" {
		t.Errorf("got %q", got)
	}
}

func TestShortenCountsRunes(t *testing.T) {
	if got := Shorten("Œuvres complètes", 7); got != "Œuvres…" {
		t.Errorf("got %q", got)
	}
}

func TestWrapKeepsWords(t *testing.T) {
	want := []string{"it was a dark", "and stormy", "night"}
	if got := Wrap("it was a dark and stormy night", 13); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
