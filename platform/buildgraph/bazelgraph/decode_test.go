package bazelgraph

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"google.golang.org/protobuf/encoding/protowire"

	"landfall.build/events/seedtest"
)

// twoTargets returns a package with one rule.
func twoTargets() made {
	var m made
	m.target(targetSource, sourceOf("//p:BUILD"))
	m.target(targetRule, ruleOf("//p:r", "genrule", []string{"//p:b", "//p:a"}, "cmd", "x", "name", "r"))
	return m
}

func decodeBytes(b []byte) (*answer, error) { return decode(bytes.NewReader(b)) }

func TestATruncatedAnswerIsNoneAtAll(t *testing.T) {
	whole := twoTargets()
	borders := []int{}
	for n := range len(whole) {
		a, err := decodeBytes(whole[:n])
		if err == nil {
			borders = append(borders, n)
			if len(a.rules) > 0 {
				t.Errorf("%d of %d bytes have the rule", n, len(whole))
			}
		} else if !errors.Is(err, errOdd) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	// At the borders between targets only the exit code and the graph's own check can tell.
	if len(borders) != 2 {
		t.Errorf("answers of %v bytes are taken", borders)
	}
	if _, err := decode(iotest.TimeoutReader(bytes.NewReader(whole))); err == nil {
		t.Error("a broken pipe is an end")
	}
}

func TestWhatIsNotUnderstoodIsRefused(t *testing.T) {
	for name, m := range map[string]func() made{
		"another field":       func() (m made) { m.text(2, "x"); return },
		"a number":            func() (m made) { m.number(1, 7); return },
		"no type":             func() (m made) { m.message(1, nil); return },
		"a type of tomorrow":  func() (m made) { m.target(9, nil); return },
		"a rule without name": func() (m made) { m.target(targetRule, ruleOf("", "x", nil)); return },
		"a rule without class": func() (m made) {
			m.target(targetRule, ruleOf("//p:x", "", nil))
			return
		},
		"a rule of another repository": func() (m made) { m.target(targetRule, ruleOf("@r//p:x", "x", nil)); return },
		"a name that is no label":      func() (m made) { m.target(targetSource, sourceOf("p/x")); return },
		"a length beyond all bounds": func() made {
			return protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.BytesType), 1<<40)
		},
	} {
		if a, err := decodeBytes(m()); !errors.Is(err, errOdd) {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
}

// TestADigestHoldsAllButWhereARuleStands changes each field of a rule, those of a newer Bazel among them.
func TestADigestHoldsAllButWhereARuleStands(t *testing.T) {
	digest := func(r made) [32]byte {
		t.Helper()
		var m made
		m.target(targetRule, r)
		a, err := decodeBytes(m)
		if err != nil {
			t.Fatal(err)
		}
		return a.rules[0].digest
	}
	with := func(edit func(r *made)) made {
		r := ruleOf("//p:r", "genrule", []string{"//p:a"}, "cmd", "x", "generator_location", "/a/BUILD:1")
		edit(&r)
		return r
	}
	plain := digest(with(func(*made) {}))
	for name, edit := range map[string]func(r *made){
		"location":             func(r *made) { r.text(ruleLocation, "/x:1") },
		"instantiation":        func(r *made) { r.text(ruleInstantiation, "BUILD:1") },
		"definition":           func(r *made) { r.text(ruleDefinition, "x.bzl:1:1: f") },
		"hash of the Starlark": func(r *made) { r.text(ruleStarlarkHash, "abc") },
	} {
		if digest(with(edit)) != plain {
			t.Errorf("%s is in the digest", name)
		}
	}
	if digest(ruleOf("//p:r", "genrule", []string{"//p:a"}, "generator_location", "/b/BUILD:9", "cmd", "x")) != plain {
		t.Error("the place or the order of attributes is in the digest")
	}
	seen := map[[32]byte]string{plain: "nothing"}
	for name, edit := range map[string]func(r *made){
		"input":  func(r *made) { r.text(ruleInput, "//p:b") },
		"output": func(r *made) { r.text(ruleOutput, "//p:b") },
		"attribute": func(r *made) {
			r.message(ruleAttribute, protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "new"))
		},
		"features": func(r *made) { r.text(7, "f") },
		"tomorrow": func(r *made) { r.text(99, "f") },
		"number":   func(r *made) { r.number(98, 1) },
	} {
		d := digest(with(edit))
		if earlier, twice := seen[d]; twice {
			t.Errorf("%s gives the digest of %s", name, earlier)
		}
		seen[d] = name
	}
}

// TestDecodeReadsWhatWasWritten holds random answers against what they were made of.
func TestDecodeReadsWhatWasWritten(t *testing.T) {
	random := seedtest.Random(t)
	word := func() string { return "w" + string(rune('a'+random.IntN(26))) + strings.Repeat("é", random.IntN(3)) }
	words := func() (list []string) {
		for range random.IntN(4) {
			list = append(list, "//"+word()+":"+word())
		}
		return list
	}
	for range 300 {
		var m made
		type want struct {
			label             string
			inputs, outputs   []string
			visibility, stack []string
			manual            bool
		}
		var wants []want
		for range random.IntN(5) {
			w := want{"//" + word() + ":" + word(), words(), words(), words(), words(), random.IntN(2) == 0}
			r := ruleOf(w.label, word(), w.inputs)
			r.text(ruleOutput, w.outputs...)
			r.text(ruleDefinition, w.stack...)
			var visibility, tags made
			visibility.text(attributeName, "visibility")
			visibility.text(attributeTexts, w.visibility...)
			r.message(ruleAttribute, visibility)
			tags.text(attributeName, "tags")
			tags.text(attributeTexts, "x")
			if w.manual {
				tags.text(attributeTexts, "manual")
			}
			r.message(ruleAttribute, tags)
			m.target(targetRule, r)
			slices.Sort(w.inputs)
			slices.Sort(w.outputs)
			wants = append(wants, w)
		}
		a, err := decode(iotest.OneByteReader(bytes.NewReader(m)))
		if err != nil || len(a.rules) != len(wants) {
			t.Fatalf("%d rules of %d: %v", len(a.rules), len(wants), err)
		}
		for i, w := range wants {
			r := a.rules[i]
			if r.label.String() != w.label || !slices.Equal(r.inputs, w.inputs) || !slices.Equal(r.outputs, w.outputs) ||
				!slices.Equal(r.visibility, w.visibility) || !slices.Equal(r.definition, w.stack) || r.manual != w.manual {
				t.Errorf("%+v, want %+v", r, w)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(twoTargets()))
	if recorded, err := os.ReadFile(recordedPath); err == nil {
		f.Add(recorded[:min(len(recorded), 20_000)])
	}
	f.Fuzz(func(t *testing.T, output []byte) {
		a, err := decodeBytes(output)
		if err != nil {
			return
		}
		again, err := decodeBytes(output)
		if err != nil || len(again.rules) != len(a.rules) {
			t.Fatal("an answer is read in two ways")
		}
		for i, r := range a.rules {
			if again.rules[i].digest != r.digest || r.class == "" || r.label.repository != "" {
				t.Fatalf("%+v and %+v", r, again.rules[i])
			}
		}
	})
}
