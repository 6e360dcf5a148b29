package configuration

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const (
	examplePath = "../../schemas/configuration/example.yaml"
	schemaPath  = "../../schemas/configuration/configuration.schema.json"
)

var fourCores = Defaults{Workers: 4}

const smallest = `version: 1
repositories:
  shop: {url: shop.git}
queues:
  main: {repository: shop}
`

// exampleTree returns the example as YAML without types, for tests to change.
func exampleTree(t testing.TB) map[string]any {
	t.Helper()
	text, err := os.ReadFile(examplePath)
	if err != nil {
		t.Fatal(err)
	}
	tree := map[string]any{}
	if err := yaml.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

func marshal(t testing.TB, tree any) []byte {
	t.Helper()
	text, err := yaml.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func mustParse(t testing.TB, text string) *Configuration {
	t.Helper()
	c, err := Parse([]byte(text), "f.yaml", fourCores)
	if err != nil {
		t.Fatalf("%v\nin:\n%s", err, text)
	}
	return c
}

// problemsOf parses a text that has to be refused.
func problemsOf(t testing.TB, text string) Problems {
	t.Helper()
	_, err := Parse([]byte(text), "f.yaml", fourCores)
	var problems Problems
	if !errors.As(err, &problems) || len(problems) == 0 {
		t.Fatalf("refused with %v, want Problems, for:\n%s", err, text)
	}
	return problems
}

// problemsBeside returns what is wrong with a section that stands beside a smallest configuration, "" for nothing.
func problemsBeside(t testing.TB, section string) string {
	t.Helper()
	_, err := Parse([]byte(smallest+section+"\n"), "f.yaml", fourCores)
	if err == nil {
		return ""
	}
	problems, _ := errors.AsType[Problems](err)
	if len(problems) == 0 {
		t.Fatal(err)
	}
	return problems.Error()
}

// leaf is a field of the struct at a place of the example: names and indexes.
type leaf struct {
	place []any
	field reflect.StructField
}

func (l leaf) path() string {
	at := root
	for _, part := range l.place {
		switch part := part.(type) {
		case string:
			at = at.child(part)
		case int:
			at = at.index(part)
		}
	}
	return at.text
}

// exampleFields returns every field of every section, each at one place of the example.
func exampleFields() []leaf {
	return fieldsOf(reflect.TypeFor[Configuration](), nil)
}

func fieldsOf(section reflect.Type, place []any) []leaf {
	var list []leaf
	for i := range section.NumField() {
		field := section.Field(i)
		name := field.Tag.Get("yaml")
		if name == "-" {
			continue
		}
		here := append(append([]any{}, place...), name)
		list = append(list, leaf{here, field})
		switch {
		case field.Type.Kind() == reflect.Struct:
			list = append(list, fieldsOf(field.Type, here)...)
		case field.Type == reflect.TypeFor[map[string]Queue]():
			list = append(list, fieldsOf(field.Type.Elem(), append(here, "shop-main"))...)
		case field.Type == reflect.TypeFor[map[string]Repository]():
			list = append(list, fieldsOf(field.Type.Elem(), append(here, "shop"))...)
		case field.Type == reflect.TypeFor[map[string]Pool]():
			list = append(list, fieldsOf(field.Type.Elem(), append(here, "default"))...)
		case field.Type == reflect.TypeFor[map[string]Secret]():
			list = append(list, fieldsOf(field.Type.Elem(), append(here, "REGISTRY_TOKEN"))...)
		case field.Type == reflect.TypeFor[map[string]Issuer]():
			list = append(list, fieldsOf(field.Type.Elem(), append(here, "company"))...)
		case field.Type == reflect.TypeFor[map[string]Cache]():
			list = append(list, fieldsOf(field.Type.Elem(), append(here, "ccache"))...)
		case field.Type == reflect.TypeFor[[]AuthorQuota](), field.Type == reflect.TypeFor[[]TeamQuota](), field.Type == reflect.TypeFor[[]AccessRule](), field.Type == reflect.TypeFor[[]ClaimSet]():
			list = append(list, fieldsOf(field.Type.Elem(), append(here, 0))...)
		case field.Type == reflect.TypeFor[[]Step]():
			list = append(list, fieldsOf(field.Type.Elem(), append(here, 1))...)
		}
	}
	return list
}

// lookup returns what the tree has at a place.
func lookup(tree any, place []any) (any, bool) {
	for _, part := range place {
		switch part := part.(type) {
		case string:
			mapping, ok := tree.(map[string]any)
			if !ok {
				return nil, false
			}
			if tree, ok = mapping[part]; !ok {
				return nil, false
			}
		case int:
			list, ok := tree.([]any)
			if !ok || part >= len(list) {
				return nil, false
			}
			tree = list[part]
		}
	}
	return tree, true
}

// replace sets the value at a place of the tree.
func replace(t testing.TB, tree any, place []any, value any) {
	t.Helper()
	around, ok := lookup(tree, place[:len(place)-1])
	if !ok {
		t.Fatalf("the example has nothing at %v", place)
	}
	switch last := place[len(place)-1].(type) {
	case string:
		around.(map[string]any)[last] = value
	case int:
		around.([]any)[last] = value
	}
}

func find(problems Problems, path, message string) bool {
	for _, problem := range problems {
		if problem.Path == path && strings.Contains(problem.Message, message) {
			return true
		}
	}
	return false
}
