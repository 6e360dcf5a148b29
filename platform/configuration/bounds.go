package configuration

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// checkBounds checks every field against its tags, from this value down.
func checkBounds(value reflect.Value, tag reflect.StructTag, at *path, f *findings) {
	if value.Kind() == reflect.Pointer {
		if !value.IsNil() {
			checkBounds(value.Elem(), tag, at, f)
		}
		return
	}
	// What could not be decoded has been reported, and is a default here.
	if f.sound(at) {
		checkValue(value, tag, at, f)
	}
	switch value.Kind() {
	case reflect.Struct:
		for i := range value.NumField() {
			field := value.Type().Field(i)
			name := field.Tag.Get("yaml")
			if name == "-" {
				continue
			}
			place := at.child(name)
			if field.Tag.Get("required") != "" && !f.given(place) {
				f.add(place, "is missing", "add it")
				continue
			}
			checkBounds(value.Field(i), field.Tag, place, f)
		}
	case reflect.Map:
		for _, key := range value.MapKeys() {
			place := at.child(key.String())
			checkPattern(key.String(), tag.Get("keys"), "named", place, f)
			checkBounds(value.MapIndex(key), "", place, f)
		}
	case reflect.Slice:
		for i := range value.Len() {
			checkBounds(value.Index(i), "", at.index(i), f)
		}
	}
}

func checkValue(value reflect.Value, tag reflect.StructTag, at *path, f *findings) {
	if allowed := tag.Get("enum"); allowed != "" {
		names := strings.Split(allowed, ",")
		if text := show(value); !slices.Contains(names, strings.Trim(text, `"`)) {
			f.add(at, fmt.Sprintf("is %s, must be %s", text, oneOf(names)), adviseEnum(value, names))
		}
	}
	if text := value; text.Kind() == reflect.String && !checkPattern(text.String(), tag.Get("pattern"), "", at, f) {
		return
	}
	measure, unit := measureOf(value)
	for _, bound := range boundsOf(value.Type(), tag) {
		if bound.holds(measure) {
			continue
		}
		f.add(at, fmt.Sprintf("is %s%s, must be %s", showMeasure(value, measure), unit, describeBounds(tag)), "")
		return
	}
}

// oneOf lists allowed values, as in "a, b or c".
func oneOf(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func adviseEnum(value reflect.Value, names []string) string {
	if value.Kind() != reflect.String {
		return ""
	}
	if meant := Closest(value.String(), names); meant != "" {
		return fmt.Sprintf("did you mean %s?", meant)
	}
	return ""
}

func checkPattern(text, pattern, how string, at *path, f *findings) bool {
	if pattern == "" {
		return true
	}
	known, ok := textPatterns[pattern]
	if !ok {
		panic("configuration: no pattern " + pattern)
	}
	if known.expression().MatchString(text) {
		return true
	}
	if how != "" {
		how += " "
	}
	if at.placesSecret() {
		f.add(at, known.requirement, "the value itself must not be here")
		return false
	}
	f.add(at, fmt.Sprintf("is %s%s, %s", how, quote(text), known.requirement), "")
	return false
}

// bound is one side of what is allowed.
type bound struct {
	kind  string // minimum, maximum or above
	limit float64
}

func (b bound) holds(measure float64) bool {
	switch b.kind {
	case "minimum":
		return measure >= b.limit
	case "maximum":
		return measure <= b.limit
	default:
		return measure > b.limit
	}
}

var boundKinds = []string{"minimum", "above", "maximum"}

func boundsOf(of reflect.Type, tag reflect.StructTag) []bound {
	var list []bound
	for _, kind := range boundKinds {
		if text, ok := tag.Lookup(kind); ok {
			list = append(list, bound{kind, parseLimit(of, text)})
		}
	}
	return list
}

// parseLimit reads a bound of a tag; one that cannot be read is a defect of this
// package, and the first test that loads anything meets it.
func parseLimit(of reflect.Type, text string) float64 {
	switch of {
	case durationType:
		duration, err := ParseDuration(text)
		if err != nil {
			panic("configuration: " + err.Error())
		}
		return float64(duration)
	case sizeType:
		size, err := parseSize(text)
		if err != nil {
			panic("configuration: " + err.Error())
		}
		return float64(size)
	}
	number, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic("configuration: " + err.Error())
	}
	return number
}

// measureOf returns the number that bounds apply to, and what it counts.
func measureOf(value reflect.Value) (measure float64, unit string) {
	switch value.Kind() {
	case reflect.Int, reflect.Int64:
		return float64(value.Int()), ""
	case reflect.Float64:
		return value.Float(), ""
	case reflect.String:
		return float64(utf8.RuneCountInString(value.String())), " characters long"
	case reflect.Map, reflect.Slice:
		return float64(value.Len()), " entries"
	}
	return 0, ""
}

func showMeasure(value reflect.Value, measure float64) string {
	switch value.Kind() {
	case reflect.String, reflect.Map, reflect.Slice:
		return strconv.FormatFloat(measure, 'f', -1, 64)
	}
	return show(value)
}

// show prints a value as the file would have it.
func show(value reflect.Value) string {
	switch v := value.Interface().(type) {
	case time.Duration:
		return formatDuration(v)
	case Size:
		return v.String()
	}
	switch value.Kind() {
	case reflect.String:
		return quote(value.String())
	case reflect.Float64:
		return strconv.FormatFloat(value.Float(), 'g', -1, 64)
	}
	return fmt.Sprint(value.Interface())
}

// describeBounds returns what is allowed, as in "at least 1, at most 4096".
func describeBounds(tag reflect.StructTag) string {
	words := map[string]string{"minimum": "at least ", "above": "more than ", "maximum": "at most "}
	var parts []string
	for _, kind := range boundKinds {
		if text, ok := tag.Lookup(kind); ok {
			parts = append(parts, words[kind]+text)
		}
	}
	return strings.Join(parts, ", ")
}
