package nodegraph

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"landfall.build/events/seedtest"
)

// plainOf is a value as a general parser gives it.
func (v *yamlValue) plainOf() any {
	switch {
	case v.keys != nil:
		fields := map[string]any{}
		for i, key := range v.keys {
			fields[key] = v.values[i].plainOf()
		}
		return fields
	case v.items != nil:
		var items []any
		for _, item := range v.items {
			items = append(items, item.plainOf())
		}
		return items
	}
	return v.text
}

// randomYAML writes a collection as package managers do, indented by that much.
func randomYAML(random *rand.Rand, b *strings.Builder, indent, depth int) {
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	scalar := func() string {
		return pick("text", "'single: quoted'", `"double # quoted"`, "a@npm:^1", "'it''s'", `"a \"b\" \\"`, "two words", "sha512-ab/cd+e==", "https://x.example/y#z", "workspace:*", "'@a/b'", "''")
	}
	key := func(i int) string {
		return pick(fmt.Sprintf("key%d", i), fmt.Sprintf("'@s/key%d@1.0.0(x@2)'", i), fmt.Sprintf(`"k%d@npm:^1, k@npm:2"`, i), fmt.Sprintf("/a/b@%d.x", i))
	}
	space := strings.Repeat(" ", indent)
	isList := depth > 0 && random.IntN(4) == 0
	for i := range 1 + random.IntN(4) {
		if random.IntN(8) == 0 {
			b.WriteString("\n" + pick("", space+"# comment\n"))
		}
		b.WriteString(space)
		switch {
		case isList:
			b.WriteString("- " + scalar() + "\n")
			continue
		case random.IntN(10) == 0:
			b.WriteString("? " + key(i) + "\n" + space + ":")
		default:
			b.WriteString(key(i) + ":")
		}
		switch n := random.IntN(6); {
		case n < 2 && depth < 4:
			b.WriteString("\n")
			randomYAML(random, b, indent+2, depth+1)
		case n == 2:
			b.WriteString(pick(" {}", " []", " {a: 'x', 'b@c': "+pick("y", "'z'", "[p, 'q']")+"}", " [one, 'two', {k: v}]") + "\n")
		default:
			b.WriteString(" " + scalar() + pick("", "", " # comment") + "\n")
		}
	}
}

func TestYAMLIsReadAsAGeneralParserDoes(t *testing.T) {
	random := seedtest.Random(t)
	for range 2000 {
		var b strings.Builder
		randomYAML(random, &b, 0, 0)
		var want any
		if err := yaml.Unmarshal([]byte(b.String()), &want); err != nil {
			t.Fatalf("%v in\n%s", err, b.String())
		}
		got, line, err := parseYAML([]byte(b.String()))
		if err != nil {
			t.Fatalf("line %d: %v in\n%s", line, err, b.String())
		}
		if x, y := normalPlain(got.plainOf()), normalPlain(want); x != y {
			t.Fatalf("got\n%s\nwant\n%s\nfor\n%s", x, y, b.String())
		}
	}
}

// normalPlain prints a value; nothing, an empty list and an empty mapping are one.
func normalPlain(v any) string {
	switch v := v.(type) {
	case nil:
		return `""`
	case map[string]any:
		if len(v) == 0 {
			return `""`
		}
		text := map[string]string{}
		for key, value := range v {
			text[key] = normalPlain(value)
		}
		return fmt.Sprint(text)
	case []any:
		if len(v) == 0 {
			return `""`
		}
		var text []string
		for _, item := range v {
			text = append(text, normalPlain(item))
		}
		return fmt.Sprint(text)
	}
	return fmt.Sprintf("%q", fmt.Sprint(v))
}

func TestTextsInBlocksAndLongKeysAreRead(t *testing.T) {
	got, _, err := parseYAML([]byte("---\na: |-\n  one: two\n\n   three\nb: >\n  text\n? 'long key'\n: c: d\n  # comment\nlist:\n- x: 1\n  y: '2'\n- z\n"))
	if err == nil {
		t.Fatalf("a mapping on the line of a long key's value is read as %v", got.plainOf())
	}
	got, _, err = parseYAML([]byte("---\na: |-\n  one: two\n\n   three\nb: >\n  text\n? 'long key'\n:\n  c: d\n  # comment\nlist:\n- x: 1\n  y: '2'\n- z\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := `map[a:"  one: two\n\n   three\n" b:"  text\n" list:[map[x:"1" y:"2"] "z"] long key:map[c:"d"]]`
	if normalPlain(got.plainOf()) != want {
		t.Errorf("got %s", normalPlain(got.plainOf()))
	}
}

func TestYAMLThatIsNotUnderstoodIsRefused(t *testing.T) {
	for _, text := range []string{
		"a: &x b\n", "a: *x\n", "a: !!str b\n", "a: 'one\n  two'\n", "a: one\n  two\n", "a: {b: c,\n  d: e}\n", "a: [b\n", "just a text\n", "a: \"\\x41\"\n",
		"<<: b\n" + strings.Repeat("a: {", 40), strings.Repeat("- ", 100) + "x\n", "a:\n    b: c\n  d: e\n", "a: 'b' c\n", strings.Repeat("[", 100000), "{{{{{{{{{{{", "- - a\n",
	} {
		if got, _, err := parseYAML([]byte(text)); err == nil {
			t.Errorf("%.40q is read as %v", text, got.plainOf())
		}
	}
}
