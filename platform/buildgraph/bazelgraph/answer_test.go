package bazelgraph

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// made builds the output of a query, as build.proto has it.
type made []byte

func (m *made) message(number protowire.Number, body []byte) {
	*m = protowire.AppendBytes(protowire.AppendTag(*m, number, protowire.BytesType), body)
}

func (m *made) text(number protowire.Number, texts ...string) {
	for _, t := range texts {
		m.message(number, []byte(t))
	}
}

func (m *made) number(number protowire.Number, value uint64) {
	*m = protowire.AppendVarint(protowire.AppendTag(*m, number, protowire.VarintType), value)
}

// target adds a target of a type.
func (m *made) target(kind protowire.Number, body made) {
	var t made
	t.number(targetType, uint64(kind-1))
	t.message(kind, body)
	m.message(1, t)
}

// ruleOf makes a rule with texts as attributes, by name and value.
func ruleOf(name, class string, inputs []string, attributes ...string) made {
	var r made
	r.text(ruleName, name)
	r.text(ruleClass, class)
	r.text(ruleLocation, "/somewhere/else/BUILD:1:2")
	for i := 0; i+1 < len(attributes); i += 2 {
		var a made
		a.text(attributeName, attributes[i])
		a.number(2, 2)
		a.text(attributeText, attributes[i+1])
		r.message(ruleAttribute, a)
	}
	r.text(ruleInput, inputs...)
	return r
}

// sourceOf makes a source file, or a BUILD file.
func sourceOf(name string) made {
	var s made
	s.text(sourceName, name)
	s.text(sourceLocation, "/somewhere/else:1:1")
	return s
}
