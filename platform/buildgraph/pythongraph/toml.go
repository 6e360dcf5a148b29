package pythongraph

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"landfall.build/platform/buildgraph/nesting"
	"landfall.build/platform/buildgraph/textline"
)

// table is a table of a TOML file.
type table map[string]any

// parseTable reads a TOML file. Line is where it is wrong.
func parseTable(content []byte) (t table, line int, err error) {
	defer func() {
		// A parser that panics must not take the service with it.
		if cause := recover(); cause != nil {
			t, line, err = nil, 0, fmt.Errorf("cannot be read: %v", cause)
		}
	}()
	if err := nesting.Check(content); err != nil {
		return nil, 0, err
	}
	t = table{}
	if err := toml.Unmarshal(content, (*map[string]any)(&t)); err != nil {
		if wrong, is := errors.AsType[toml.ParseError](err); is {
			return nil, textline.At(content, wrong.Position.Start+wrong.Position.Len-1), errors.New(wrong.Message)
		}
		return nil, 0, err
	}
	return t, 0, nil
}

// table returns the table at a path of keys, nil if there is none.
func (t table) table(keys ...string) table {
	for _, key := range keys {
		next, _ := t[key].(map[string]any)
		t = next
	}
	return t
}

// text returns the text of a key, empty if it is none.
func (t table) text(key string) string {
	s, _ := t[key].(string)
	return s
}

// texts returns the texts of a list, or of a text alone.
func (t table) texts(key string) []string { return textsOf(t[key]) }

func textsOf(value any) []string {
	switch v := value.(type) {
	case string:
		return []string{v}
	case []any:
		var list []string
		for _, item := range v {
			if s, is := item.(string); is {
				list = append(list, s)
			}
		}
		return list
	}
	return nil
}

// tables returns the tables of a list.
func (t table) tables(key string) []table { return tablesOf(t[key]) }

func tablesOf(value any) []table {
	var list []table
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			if m, is := item.(map[string]any); is {
				list = append(list, m)
			}
		}
	case []map[string]any:
		for _, m := range v {
			list = append(list, m)
		}
	case map[string]any:
		list = append(list, v)
	}
	return list
}

// keys returns the keys in order.
func (t table) keys() []string { return slices.Sorted(maps.Keys(t)) }

// normal returns a value in a form in which equal meaning is equal bytes: without comments, and keys in order.
func normal(value any) []byte {
	var b strings.Builder
	writeNormal(&b, value)
	return []byte(b.String())
}

func writeNormal(b *strings.Builder, value any) {
	list := func(n int, item func(int) any) {
		b.WriteByte('[')
		for i := range n {
			writeNormal(b, item(i))
			b.WriteByte(',')
		}
		b.WriteByte(']')
	}
	switch v := value.(type) {
	case table:
		writeNormal(b, map[string]any(v))
	case map[string]any:
		b.WriteByte('{')
		for _, key := range slices.Sorted(maps.Keys(v)) {
			fmt.Fprintf(b, "%q:", key)
			writeNormal(b, v[key])
			b.WriteByte(',')
		}
		b.WriteByte('}')
	case []any:
		list(len(v), func(i int) any { return v[i] })
	case []map[string]any:
		list(len(v), func(i int) any { return v[i] })
	case string:
		fmt.Fprintf(b, "%q", v)
	default:
		// Numbers, booleans and times.
		fmt.Fprintf(b, "%T %v", v, v)
	}
}

// eachText calls visit for every text in a value.
func eachText(value any, visit func(string)) {
	switch v := value.(type) {
	case table:
		eachText(map[string]any(v), visit)
	case map[string]any:
		for _, item := range v {
			eachText(item, visit)
		}
	case []any:
		for _, item := range v {
			eachText(item, visit)
		}
	case []map[string]any:
		for _, item := range v {
			eachText(item, visit)
		}
	case string:
		visit(v)
	}
}
