package configuration

import (
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// decoder writes a YAML tree over a configuration that holds the defaults. What
// does not fit is reported and leaves the default standing, so that the rest is
// still checked.
type decoder struct {
	*findings
	defaults Defaults
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	sizeType     = reflect.TypeFor[Size]()
)

func (d decoder) value(node ast.Node, target reflect.Value, at *path) {
	empty := isEmpty(node)
	switch target.Kind() {
	case reflect.Struct, reflect.Map, reflect.Slice:
		// A section whose entries are all commented out is YAML's null.
		if empty {
			return
		}
	case reflect.Pointer:
		if empty {
			target.SetZero()
			return
		}
		fresh := reflect.New(target.Type().Elem())
		d.value(node, fresh.Elem(), at)
		target.Set(fresh)
		return
	}
	if empty {
		d.add(at, "has no value", "give one, or remove the line to take the default")
		return
	}
	switch {
	case target.Type() == durationType:
		d.duration(node, target, at)
	case target.Type() == sizeType:
		d.size(node, target, at)
	default:
		d.kind(node, target, at)
	}
}

func (d decoder) kind(node ast.Node, target reflect.Value, at *path) {
	switch target.Kind() {
	case reflect.Struct:
		d.section(node, target, at)
	case reflect.Map:
		d.named(node, target, at)
	case reflect.Slice:
		d.list(node, target, at)
	case reflect.String:
		if text, ok := textOf(node); ok {
			target.SetString(text)
			return
		}
		d.mismatch(node, at, "a text", "put it in quotes")
	case reflect.Int:
		if number, ok := integerOf(node); ok {
			target.SetInt(number)
			return
		}
		d.mismatch(node, at, "a whole number", "")
	case reflect.Float64:
		if number, ok := numberOf(node); ok {
			target.SetFloat(number)
			return
		}
		d.mismatch(node, at, "a number", "")
	default:
		panic("configuration: no decoding for " + target.Type().String())
	}
}

func (d decoder) section(node ast.Node, target reflect.Value, at *path) {
	entries, ok := d.entries(node, at)
	if !ok {
		return
	}
	fields := fieldsByName(target.Type())
	for _, entry := range entries {
		index, known := fields[entry.name]
		if !known {
			d.unknownField(entry, target.Type(), at)
			continue
		}
		d.value(entry.value, target.Field(index), at.child(entry.name))
	}
}

func (d decoder) named(node ast.Node, target reflect.Value, at *path) {
	entries, ok := d.entries(node, at)
	if !ok {
		return
	}
	result := reflect.MakeMapWithSize(target.Type(), len(entries))
	for _, entry := range entries {
		fresh := reflect.New(target.Type().Elem()).Elem()
		switch element := fresh.Addr().Interface().(type) {
		case *Queue:
			*element = NewQueue(entry.name, d.defaults)
		case *Repository:
			*element = NewRepository(entry.name)
		case *Pool:
			*element = Pool{Workers: d.defaults.Workers}
		case *Secret:
			*element = NewSecret()
		case *Webhook:
			*element = NewWebhook()
		case *Host:
			*element = NewHost()
		case *Issuer:
			*element = NewIssuer()
		case *Publisher:
			*element = NewPublisher()
		case *Cache:
			*element = NewCache(entry.name)
		}
		if fresh.Kind() == reflect.String {
			d.literal(entry.value, fresh, at.child(entry.name))
		} else {
			d.value(entry.value, fresh, at.child(entry.name))
		}
		result.SetMapIndex(reflect.ValueOf(entry.name), fresh)
	}
	target.Set(result)
}

// literalValues is what a variable can be; manifests say the same.
const literalValues = "a text, a number, true or false"

// literal takes the value of a variable as it is written: 2, 1.10 and true are texts like others, as in a manifest.
func (d decoder) literal(node ast.Node, target reflect.Value, at *path) {
	if text, ok := textOf(node); ok {
		target.SetString(text)
		return
	}
	switch node.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode, *ast.BoolNode:
		target.SetString(node.GetToken().Value)
		return
	}
	if isEmpty(node) {
		d.add(at, "has no value, must be "+literalValues, `write "" for an empty one`)
		return
	}
	d.mismatch(node, at, literalValues, "")
}

func (d decoder) list(node ast.Node, target reflect.Value, at *path) {
	sequence, ok := node.(*ast.SequenceNode)
	if !ok {
		advice := "write it as [a, b], or one '- a' per line"
		if text, isText := textOf(node); isText {
			advice = "write it as " + quoteWords(text)
		}
		d.mismatch(node, at, "a list", advice)
		return
	}
	result := reflect.MakeSlice(target.Type(), len(sequence.Values), len(sequence.Values))
	for i, element := range sequence.Values {
		place := at.index(i)
		d.lines[place.text] = lineOf(element)
		d.value(element, result.Index(i), place)
	}
	target.Set(result)
}

// entry is one key and value of a mapping.
type entry struct {
	name  string
	line  int
	value ast.Node
}

// entries returns the entries of a mapping, each name once, and notes their lines.
func (d decoder) entries(node ast.Node, at *path) ([]entry, bool) {
	mapping, ok := node.(ast.MapNode)
	if !ok {
		d.mismatch(node, at, "a mapping", "write 'name: value' lines below it, indented")
		return nil, false
	}
	var list []entry
	for iterator := mapping.MapRange(); iterator.Next(); {
		key := iterator.Key()
		name, ok := textOf(key)
		if !ok {
			d.addLine(lineOf(key), at, fmt.Sprintf("has %s as a name", describe(key)), "put the name in quotes")
			continue
		}
		place := at.child(name)
		if first, twice := d.lines[place.text]; twice {
			d.addLine(lineOf(key), place, fmt.Sprintf("is given twice, first on line %d", first), "remove one")
			continue
		}
		d.lines[place.text] = lineOf(key)
		list = append(list, entry{name: name, line: lineOf(key), value: iterator.Value()})
	}
	return list, true
}

func (d decoder) duration(node ast.Node, target reflect.Value, at *path) {
	text, ok := textOf(node)
	if !ok {
		d.mismatch(node, at, "a duration", durationAdvice)
		return
	}
	duration, err := ParseDuration(text)
	if err != nil {
		d.add(at, err.Error(), durationAdvice)
		return
	}
	target.SetInt(int64(duration))
}

func (d decoder) size(node ast.Node, target reflect.Value, at *path) {
	text, ok := textOf(node)
	if !ok {
		d.mismatch(node, at, "a size", sizeAdvice)
		return
	}
	size, err := parseSize(text)
	if err != nil {
		d.add(at, err.Error(), sizeAdvice)
		return
	}
	target.SetInt(int64(size))
}

func (d decoder) mismatch(node ast.Node, at *path, wanted, advice string) {
	if at.placesSecret() {
		d.add(at, "must be "+wanted, "the value itself must not be here")
		return
	}
	d.add(at, fmt.Sprintf("is %s, must be %s", describe(node), wanted), advice)
}

func isEmpty(node ast.Node) bool {
	switch node.(type) {
	case nil, *ast.NullNode, *ast.CommentGroupNode:
		return true
	}
	return false
}

func textOf(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		if n.Value != nil {
			return n.Value.Value, true
		}
	}
	return "", false
}

func integerOf(node ast.Node) (int64, bool) {
	n, ok := node.(*ast.IntegerNode)
	if !ok {
		return 0, false
	}
	switch number := n.Value.(type) {
	case int64:
		return number, true
	case uint64:
		return int64(min(number, math.MaxInt64)), true
	}
	return 0, false
}

func numberOf(node ast.Node) (float64, bool) {
	if whole, ok := integerOf(node); ok {
		return float64(whole), true
	}
	n, ok := node.(*ast.FloatNode)
	if !ok || math.IsInf(n.Value, 0) || math.IsNaN(n.Value) {
		return 0, false
	}
	// Adding zero makes -0.0 equal to 0 in every bit, as the hash needs it.
	return n.Value + 0, true
}

// describe returns what a node is, with its value where that is short.
func describe(node ast.Node) string {
	switch n := node.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		text, _ := textOf(n)
		return "the text " + quote(text)
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "the number " + clip(n.GetToken().Value)
	case *ast.BoolNode:
		return n.GetToken().Value
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode:
		return "null"
	case ast.MapNode:
		return "a mapping"
	}
	return "something else"
}
