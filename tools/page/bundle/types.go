package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// schema is what TypeScript needs of a schema of openapi.yaml.
type schema struct {
	Ref                  string        `yaml:"$ref"`
	Type                 string        `yaml:"type"`
	Description          string        `yaml:"description"`
	Enum                 []string      `yaml:"enum"`
	Items                *schema       `yaml:"items"`
	AdditionalProperties any           `yaml:"additionalProperties"`
	AllOf                []schema      `yaml:"allOf"`
	Required             []string      `yaml:"required"`
	Properties           yaml.MapSlice `yaml:"properties"`
}

// types returns TypeScript's interfaces of the schemas of openapi.yaml, so that the page uses what is documented and nothing else.
func types(document string) ([]byte, error) {
	content, err := os.ReadFile(document)
	if err != nil {
		return nil, err
	}
	var d struct {
		Components struct {
			Schemas yaml.MapSlice `yaml:"schemas"`
		} `yaml:"components"`
	}
	if err := yaml.UnmarshalWithOptions(content, &d, yaml.UseOrderedMap()); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteString("// Made of openapi.yaml by make page.\n")
	for _, item := range d.Components.Schemas {
		s, err := schemaOf(item.Value)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "\nexport interface %s", item.Key)
		if len(s.AllOf) > 0 {
			fmt.Fprintf(&out, " extends %s", s.AllOf[0].name())
		}
		out.WriteString(" {\n")
		for _, p := range s.Properties {
			field, err := schemaOf(p.Value)
			if err != nil {
				return nil, err
			}
			name := fmt.Sprint(p.Key)
			mark := "?"
			if slices.Contains(s.Required, name) {
				mark = ""
			}
			kind, err := field.kind()
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&out, "  %s%s: %s\n", name, mark, kind)
		}
		out.WriteString("}\n")
	}
	return out.Bytes(), nil
}

func schemaOf(value any) (s schema, err error) {
	text, err := yaml.Marshal(value)
	if err == nil {
		err = yaml.UnmarshalWithOptions(text, &s, yaml.UseOrderedMap())
	}
	return s, err
}

// name is the schema's that it refers to.
func (s schema) name() string { return s.Ref[strings.LastIndexByte(s.Ref, '/')+1:] }

// kind is its type in TypeScript.
func (s schema) kind() (string, error) {
	switch {
	case s.Ref != "":
		return s.name(), nil
	case len(s.Enum) > 0:
		names := make([]string, len(s.Enum))
		for i, name := range s.Enum {
			names[i] = strconv.Quote(name)
		}
		return strings.Join(names, " | "), nil
	}
	switch s.Type {
	case "string", "boolean":
		return s.Type, nil
	case "integer", "number":
		return "number", nil
	case "":
		return "unknown", nil
	case "array":
		of, err := s.Items.kind()
		if strings.Contains(of, " ") {
			of = "(" + of + ")"
		}
		return of + "[]", err
	case "object":
		values, err := schemaOf(s.AdditionalProperties)
		if err != nil {
			return "", err
		}
		of, err := values.kind()
		return "Record<string, " + of + ">", err
	}
	return "", fmt.Errorf("the type %s of a schema has no counterpart", s.Type)
}
