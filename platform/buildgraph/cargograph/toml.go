package cargograph

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"landfall.build/platform/buildgraph/nesting"
	"landfall.build/platform/buildgraph/textline"
)

// document is a TOML file as tables of values, with what is needed to name lines.
type document struct {
	root  map[string]any
	lines []string
	found []problem
}

// parseTOML reads a file. A syntax error is the one problem of what it returns.
func parseTOML(content []byte) *document {
	d := &document{root: map[string]any{}}
	if err := nesting.Check(content); err != nil {
		d.complain(1, "%s", err)
		return d
	}
	text := strings.TrimPrefix(string(content), "\ufeff")
	if _, err := toml.Decode(text, &d.root); err != nil {
		line, message := 1, err.Error()
		if at, is := errors.AsType[toml.ParseError](err); is {
			line, message = textline.At([]byte(text), at.Position.Start+at.Position.Len-1), at.Message
			if message == "" {
				message = strings.TrimPrefix(at.Error(), "toml: ")
			}
		}
		d.root = map[string]any{}
		d.complain(line, "%s", message)
		return d
	}
	d.lines = strings.Split(text, "\n")
	return d
}

func (d *document) complain(line int, format string, args ...any) {
	d.found = append(d.found, problem{line, fmt.Sprintf(format, args...)})
}

// line returns where a key is first written, 1 if that is not found.
func (d *document) line(key string) int {
	for i, line := range d.lines {
		if at := strings.Index(line, key); at >= 0 && strings.Trim(line[:at], " \t\"'[.") == "" {
			return i + 1
		}
	}
	for i, line := range d.lines {
		if strings.Contains(line, key) {
			return i + 1
		}
	}
	return 1
}

// table returns a table within one, empty if it is not there.
func (d *document) table(in map[string]any, key string) map[string]any {
	value, ok := in[key]
	if !ok {
		return nil
	}
	table, ok := value.(map[string]any)
	if !ok {
		d.complain(d.line(key), "%s must be a table", key)
	}
	return table
}

// text returns a string, "" if it is not there.
func (d *document) text(in map[string]any, key string) string {
	value, ok := in[key]
	if !ok {
		return ""
	}
	text, ok := value.(string)
	if !ok {
		d.complain(d.line(key), "%s must be a string", key)
	}
	return text
}

// texts returns an array of strings.
func (d *document) texts(in map[string]any, key string) []string {
	value, ok := in[key]
	if !ok {
		return nil
	}
	array, ok := value.([]any)
	var texts []string
	for _, one := range array {
		text, is := one.(string)
		ok = ok && is
		texts = append(texts, text)
	}
	if !ok {
		d.complain(d.line(key), "%s must be an array of strings", key)
		return nil
	}
	return texts
}

// tables returns an array of tables.
func (d *document) tables(in map[string]any, key string) []map[string]any {
	switch value := in[key].(type) {
	case nil:
		return nil
	case []map[string]any:
		return value
	case []any: // of inline tables
		var all []map[string]any
		for _, one := range value {
			if table, is := one.(map[string]any); is {
				all = append(all, table)
			}
		}
		if len(all) == len(value) {
			return all
		}
	}
	d.complain(d.line(key), "%s must be an array of tables", key)
	return nil
}

// normal appends a value so that equal meaning gives equal bytes, whatever the order of keys.
func normal(to []byte, value any) []byte {
	switch v := value.(type) {
	case map[string]any:
		to = append(to, '{')
		for _, key := range slices.Sorted(maps.Keys(v)) {
			to = fmt.Appendf(to, "%q=", key)
			to = append(normal(to, v[key]), ',')
		}
		return append(to, '}')
	case []map[string]any:
		to = append(to, '[')
		for _, one := range v {
			to = append(normal(to, one), ',')
		}
		return append(to, ']')
	case []any:
		to = append(to, '[')
		for _, one := range v {
			to = append(normal(to, one), ',')
		}
		return append(to, ']')
	case time.Time:
		return fmt.Appendf(to, "%s", v.Format(time.RFC3339Nano))
	case string:
		return fmt.Appendf(to, "%q", v)
	}
	return fmt.Appendf(to, "%T:%v", value, value)
}

// eachText yields every string within a value.
func eachText(value any, yield func(text string)) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			eachText(v[key], yield)
		}
	case []map[string]any:
		for _, one := range v {
			eachText(one, yield)
		}
	case []any:
		for _, one := range v {
			eachText(one, yield)
		}
	case string:
		yield(v)
	}
}
