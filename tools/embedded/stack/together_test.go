package stack_test

import (
	"slices"
	"strings"
	"testing"

	"landfall.build/services/gateway/view"
)

// TestAChangeThatFailsOnlyWithWhatLandedBeforeItIsNotBlamedAlone: rename takes a name away from //f0, and lands. The other changes are
// based on the commit before it. invoice adds a target that uses the name, which the mainline does not have, so nothing green was
// ever built to compare with. cart uses it in a target that the mainline has.
func TestAChangeThatFailsOnlyWithWhatLandedBeforeItIsNotBlamedAlone(t *testing.T) {
	together(t)
	r := newRepository(t)
	r.write("f0/api.txt", "Percent\n")
	r.commit("the name")
	r.git("push", "-q", "origin", "main")
	r.branch("rename", "f0/api.txt", "Part\n")
	uses := func(branch, name string) {
		r.git("checkout", "-q", "-B", branch, "main")
		r.write(name+"/landfall.yaml", "targets: [{name: "+name+", kind: test, sources: ['*.txt'], deps: ['//f0'], steps: [{name: compile, run: [sh, -c, \"cat f0/*.txt | grep -q Percent || { echo 'a.txt:1: undefined: Percent'; exit 1; }\"]}]}]\n")
		r.write(name+"/a.txt", "Percent\n")
		r.commit(branch)
		r.git("push", "-q", "origin", branch)
		r.git("checkout", "-q", "main")
	}
	uses("invoice", "invoice")
	uses("cart", "f1")
	s, c := start(t, configured(t, r, t.TempDir()))
	t.Cleanup(func() { s.Close() })
	land(t, c, "rename", "rename")
	expect(t, c, "rename", "landed")

	land(t, c, "invoice", "invoice")
	v := expect(t, c, "invoice", "rejected")
	if f := v.Failure; f == nil || f.Whose != view.WhoseUnknown || !slices.Equal(f.With, []string{"rename"}) ||
		f.Sentence != "//invoice is new with your change, and fails on top of rename, which landed before it; it was not built without it: a.txt:1: undefined: Percent" {
		t.Errorf("%s: %+v", v.Why, f)
	}
	land(t, c, "cart", "cart")
	v = expect(t, c, "cart", "rejected")
	if f := v.Failure; f == nil || f.Whose != view.WhoseYours || !slices.Equal(f.With, []string{"rename"}) ||
		f.Sentence != "your change breaks //f1: a.txt:1: undefined: Percent (not built without rename, which landed meanwhile)" {
		t.Errorf("%s: %+v", v.Why, f)
	}
	for change, want := range map[string]string{
		"invoice": "invoice: //invoice is new with your change, and fails on top of rename, which landed before it;",
		"cart":    "  landed    since the commit that it is based on, and //f1 was not built without: rename\n",
	} {
		if text := prints(t, s.URL(), "explain", change); !strings.Contains(text, want) {
			t.Errorf("explain reads\n%s", text)
		}
	}
}
