package gitrepo

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestTheMainlineIsItsFirstParents(t *testing.T) {
	f := newFixture(t)
	root := f.commit("root")
	a := f.commit("a")
	f.git("checkout", "--quiet", "-b", "side")
	side := f.commit("side")
	f.git("checkout", "--quiet", "-")
	b := f.commit("b")
	f.git("merge", "--quiet", "--no-ff", "-m", "merge", "side")
	m := f.git("rev-parse", "HEAD")
	c := f.commit("c")
	f.publish("main")
	f.git("checkout", "--quiet", "--orphan", "other")
	stranger := f.commit("stranger")
	f.publish("other")

	for _, c := range []struct {
		from, to string
		limit    int
		want     []string
		err      error
	}{
		{root, c, 10, []string{a, b, m, c}, nil},
		{root, c, 4, []string{a, b, m, c}, nil},
		{root, c, 3, nil, ErrTooLarge},
		{c, c, 1, nil, nil},
		{"", c, 10, []string{root, a, b, m, c}, nil},
		{"", c, 2, []string{m, c}, nil},
		{side, c, 10, nil, ErrNotFirstParent},
		{c, root, 10, nil, ErrNotFirstParent},
		{stranger, c, 2, nil, ErrNotFirstParent},
		{root, strings.Repeat("1", 40), 2, nil, ErrNoSuchCommit},
		{root, "--all", 2, nil, ErrInvalid},
		{root, c, 0, nil, ErrInvalid},
	} {
		got, err := f.repo.FirstParents(t.Context(), c.from, c.to, c.limit)
		if !slices.Equal(got, c.want) || !errors.Is(err, c.err) {
			t.Errorf("from %.7s to %.7s, %d: %.7s, %v; want %.7s, %v", c.from, c.to, c.limit, got, err, c.want, c.err)
		}
	}
	for _, c := range []struct {
		a, b     string
		ancestor bool
		base     string
	}{
		{root, c, true, root}, {c, root, false, root}, {side, m, true, side}, {side, b, false, a}, {a, a, true, a}, {stranger, c, false, ""},
	} {
		if got, err := f.repo.IsAncestor(t.Context(), c.a, c.b); got != c.ancestor || err != nil {
			t.Errorf("%.7s an ancestor of %.7s: %v, %v", c.a, c.b, got, err)
		}
		if got, err := f.repo.MergeBase(t.Context(), c.a, c.b); got != c.base || err != nil {
			t.Errorf("base of %.7s and %.7s: %.7s, %v; want %.7s", c.a, c.b, got, err, c.base)
		}
	}
	got, err := f.repo.Commits(t.Context(), a, m)
	if err != nil || len(got) != 3 || got[2] != m || !slices.Contains(got, side) || !slices.Contains(got, b) {
		t.Errorf("commits %.7s, %v", got, err)
	}
}
