package configuration

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemaNode is the part of JSON Schema that the file uses.
type schemaNode struct {
	Ref                  string                 `json:"$ref"`
	Description          string                 `json:"description"`
	Type                 any                    `json:"type"`
	Properties           map[string]*schemaNode `json:"properties"`
	Required             []string               `json:"required"`
	AdditionalProperties json.RawMessage        `json:"additionalProperties"`
	PropertyNames        *schemaNode            `json:"propertyNames"`
	Items                *schemaNode            `json:"items"`
	Enum                 []any                  `json:"enum"`
	Pattern              string                 `json:"pattern"`
	Default              json.RawMessage        `json:"default"`
	Minimum              *float64               `json:"minimum"`
	Maximum              *float64               `json:"maximum"`
	ExclusiveMinimum     *float64               `json:"exclusiveMinimum"`
	MinLength            *float64               `json:"minLength"`
	MaxLength            *float64               `json:"maxLength"`
	MinItems             *float64               `json:"minItems"`
	MaxItems             *float64               `json:"maxItems"`
	MinProperties        *float64               `json:"minProperties"`
	MaxProperties        *float64               `json:"maxProperties"`
	Definitions          map[string]*schemaNode `json:"$defs"`
}

// Defaults that follow from the machine or from another field stand in the
// description, not under `default`.
var derivedDefaults = []string{
	"queues.*.workers", "queues.*.speculation.abort_threshold", "queues.*.speculation.candidates",
	"queues.*.analysis.whole_repository_steps.*.timeout", "queues.*.analysis.adapters.*.steps.*.timeout", "builder.workers", "pools.*.workers",
}

type schemaWalk struct {
	*testing.T
	root   *schemaNode
	fields int
}

func TestSchemaAndStructSayTheSame(t *testing.T) {
	text, err := os.ReadFile(schemaPath)
	if err != nil {
		t.Fatal(err)
	}
	node := &schemaNode{}
	if err := json.Unmarshal(text, node); err != nil {
		t.Fatal(err)
	}
	walk := &schemaWalk{T: t, root: node}
	walk.section(node, reflect.ValueOf(*New(fourCores)), "")
	if walk.fields < 50 {
		t.Errorf("only %d fields compared", walk.fields)
	}
}

// section compares an object of the schema with a struct that holds the defaults.
func (w *schemaWalk) section(node *schemaNode, defaults reflect.Value, at string) {
	var required []string
	for i := range defaults.NumField() {
		field := defaults.Type().Field(i)
		name := field.Tag.Get("yaml")
		if name == "" {
			w.Errorf("%s.%s has no yaml tag", at, field.Name)
		}
		if name == "-" {
			continue
		}
		if field.Tag.Get("required") != "" {
			required = append(required, name)
		}
		place := strings.TrimPrefix(at+"."+name, ".")
		property := node.Properties[name]
		if property == nil {
			w.Errorf("the schema has no %s", place)
			continue
		}
		w.field(property, field, defaults.Field(i), place)
	}
	names := fieldNames(defaults.Type())
	for name := range node.Properties {
		if !slices.Contains(names, name) {
			w.Errorf("the schema has %s.%s, the struct has not", at, name)
		}
	}
	if !slices.Equal(node.Required, required) {
		w.Errorf("%s: the schema requires %v, the struct %v", at, node.Required, required)
	}
	if string(node.AdditionalProperties) != "false" {
		w.Errorf("%s: the schema takes unknown fields", at)
	}
}

func (w *schemaWalk) field(node *schemaNode, field reflect.StructField, standard reflect.Value, at string) {
	w.fields++
	if node.Description == "" {
		w.Errorf("%s has no description", at)
	}
	of, nullable := field.Type, field.Type.Kind() == reflect.Pointer
	if nullable {
		of = of.Elem()
	}
	var element reflect.Value
	switch of {
	case reflect.TypeFor[map[string]Queue]():
		element = reflect.ValueOf(NewQueue("", fourCores))
	case reflect.TypeFor[map[string]Repository]():
		element = reflect.ValueOf(NewRepository(""))
	case reflect.TypeFor[map[string]Pool]():
		element = reflect.ValueOf(Pool{Workers: fourCores.Workers})
	case reflect.TypeFor[map[string]Secret]():
		element = reflect.ValueOf(NewSecret())
	case reflect.TypeFor[map[string]Webhook]():
		element = reflect.ValueOf(NewWebhook())
	case reflect.TypeFor[map[string]Host]():
		element = reflect.ValueOf(NewHost())
	case reflect.TypeFor[map[string]Issuer]():
		element = reflect.ValueOf(NewIssuer())
	case reflect.TypeFor[map[string]Publisher]():
		element = reflect.ValueOf(NewPublisher())
	case reflect.TypeFor[map[string]Cache]():
		element = reflect.ValueOf(NewCache(""))
	case reflect.TypeFor[[]Step]():
		element = reflect.ValueOf(Step{})
	case reflect.TypeFor[[]Input]():
		element = reflect.ValueOf(Input{})
	case reflect.TypeFor[[]AuthorQuota]():
		element = reflect.ValueOf(AuthorQuota{})
	case reflect.TypeFor[[]TeamQuota]():
		element = reflect.ValueOf(TeamQuota{})
	case reflect.TypeFor[[]RunsOn]():
		element = reflect.ValueOf(RunsOn{})
	case reflect.TypeFor[[]Quarantine]():
		element = reflect.ValueOf(Quarantine{})
	case reflect.TypeFor[[]AdapterStep]():
		element = reflect.ValueOf(AdapterStep{})
	case reflect.TypeFor[[]AdapterUse]():
		element = reflect.ValueOf(AdapterUse{})
	case reflect.TypeFor[[]AccessRule]():
		element = reflect.ValueOf(AccessRule{})
	case reflect.TypeFor[[]ClaimSet]():
		element = reflect.ValueOf(ClaimSet{})
	}
	typeName := map[reflect.Kind]string{
		reflect.Struct: "object", reflect.Map: "object", reflect.Slice: "array", reflect.String: "string",
		reflect.Int: "integer", reflect.Float64: "number", reflect.Int64: "string",
	}[of.Kind()]
	switch of.Kind() {
	case reflect.Struct, reflect.Map, reflect.Slice:
		nullable = field.Tag.Get("required") == ""
	}
	w.same(at+": type", node.Type, typeOf(typeName, nullable))
	w.bounds(node, field.Tag, of, at)

	switch {
	case of.Kind() == reflect.Struct:
		w.section(node, standard, at)
		return
	case element.IsValid() && of.Kind() == reflect.Map:
		inner := &schemaNode{}
		if err := json.Unmarshal(node.AdditionalProperties, inner); err != nil {
			w.Errorf("%s: %v", at, err)
		}
		w.section(w.resolve(inner, at), element, at+".*")
		return
	case element.IsValid():
		w.section(w.resolve(node.Items, at), element, at+".*")
		return
	case of.Kind() == reflect.Map:
		inner := &schemaNode{}
		if err := json.Unmarshal(node.AdditionalProperties, inner); err != nil {
			w.Errorf("%s: %v", at, err)
		}
		want := any([]any{"string", "number", "boolean"})
		if of.Elem().Kind() == reflect.Int {
			want = "integer"
		}
		w.same(at+": values", inner.Type, want)
		return
	case of.Kind() == reflect.Slice:
		w.same(at+": items", node.Items.Type, "string")
		return
	}
	w.standard(node, field, standard, at)
}

func (w *schemaWalk) standard(node *schemaNode, field reflect.StructField, standard reflect.Value, at string) {
	switch {
	case field.Tag.Get("required") != "" || slices.Contains(derivedDefaults, at):
		if node.Default != nil {
			w.Errorf("%s has a default in the schema: %s", at, node.Default)
		}
		return
	case node.Default == nil:
		w.Errorf("%s has no default in the schema", at)
		return
	}
	var want any
	if standard.Kind() != reflect.Pointer || !standard.IsNil() {
		value := reflect.Indirect(standard)
		want = value.Interface()
		if value.Kind() == reflect.Int64 {
			want = show(value) // durations and sizes are texts in the file
		}
	}
	text, err := json.Marshal(want)
	if err != nil {
		w.Fatal(err)
	}
	w.same(at+": default", string(node.Default), string(text))
}

func (w *schemaWalk) bounds(node *schemaNode, tag reflect.StructTag, of reflect.Type, at string) {
	var enum []any
	if names := tag.Get("enum"); names != "" {
		for name := range strings.SplitSeq(names, ",") {
			if number, err := strconv.ParseFloat(name, 64); err == nil {
				enum = append(enum, number)
				continue
			}
			enum = append(enum, name)
		}
	}
	w.same(at+": enum", node.Enum, enum)

	pattern := ""
	if name := tag.Get("pattern"); name != "" {
		pattern = textPatterns[name].expression().String()
	}
	minimum, maximum := node.Minimum, node.Maximum
	switch {
	case of == durationType || of == sizeType:
		pattern = map[bool]string{true: durationPattern.String(), false: sizePattern.String()}[of == durationType]
		if !strings.Contains(node.Description, describeBounds(tag)) {
			w.Errorf("%s: the description does not say %q", at, describeBounds(tag))
		}
		tag = ""
	case of.Kind() == reflect.String:
		minimum, maximum = node.MinLength, node.MaxLength
	case of.Kind() == reflect.Slice:
		minimum, maximum = node.MinItems, node.MaxItems
	case of.Kind() == reflect.Map:
		minimum, maximum = node.MinProperties, node.MaxProperties
		if names := node.PropertyNames; names == nil || names.Pattern != textPatterns[tag.Get("keys")].expression().String() {
			w.Errorf("%s: propertyNames is not the pattern %s", at, tag.Get("keys"))
		}
	}
	w.same(at+": pattern", node.Pattern, pattern)
	w.same(at+": minimum", minimum, limitOf(tag, "minimum"))
	w.same(at+": maximum", maximum, limitOf(tag, "maximum"))
	w.same(at+": exclusiveMinimum", node.ExclusiveMinimum, limitOf(tag, "above"))
}

func (w *schemaWalk) resolve(node *schemaNode, at string) *schemaNode {
	name, local := strings.CutPrefix(node.Ref, "#/$defs/")
	resolved := w.root.Definitions[name]
	if !local || resolved == nil {
		w.Fatalf("%s: cannot follow %q", at, node.Ref)
	}
	w.same(at+": type of an element", resolved.Type, "object")
	return resolved
}

func (w *schemaWalk) same(what string, got, want any) {
	w.Helper()
	if !reflect.DeepEqual(got, want) {
		w.Errorf("%s: the schema says %v, the struct %v", what, got, want)
	}
}

func limitOf(tag reflect.StructTag, kind string) *float64 {
	text, has := tag.Lookup(kind)
	if !has {
		return nil
	}
	number, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return &number
}

func typeOf(name string, nullable bool) any {
	if nullable {
		return []any{name, "null"}
	}
	return name
}

// compileSchema compiles the schema with an independent validator.
func compileSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(schemaPath)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// bySchema validates a YAML text against the schema.
func bySchema(t testing.TB, schema *jsonschema.Schema, text []byte) error {
	t.Helper()
	converted, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(converted)))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(value)
}

func TestSchemaTakesTheExampleAndRefusesItsViolations(t *testing.T) {
	schema := compileSchema(t)
	text, err := os.ReadFile(examplePath)
	if err != nil {
		t.Fatal(err)
	}
	if err := bySchema(t, schema, text); err != nil {
		t.Errorf("the example: %v", err)
	}
	if err := bySchema(t, schema, []byte(smallest)); err != nil {
		t.Errorf("the smallest file: %v", err)
	}
	for _, field := range exampleFields() {
		of := baseOf(field.field.Type)
		for _, kind := range []string{"required", "minimum", "maximum", "above", "enum", "pattern", "keys"} {
			if _, has := field.field.Tag.Lookup(kind); !has || ((of == durationType || of == sizeType) && kind != "required") {
				continue
			}
			outside, path, _ := violate(t, field, kind)
			if bySchema(t, schema, outside) == nil {
				t.Errorf("the schema takes a violation of %s at %s", kind, path)
			}
		}
	}
}
