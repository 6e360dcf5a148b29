package configuration

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Every tag of every field is tried on the example: a value just outside is refused
// at its place, the limit itself is not refused for this bound.
func TestEveryTagOfEveryFieldRefusesWhatIsOutside(t *testing.T) {
	tried := 0
	for _, field := range exampleFields() {
		for _, kind := range []string{"required", "minimum", "maximum", "above", "enum", "pattern", "keys"} {
			if _, has := field.field.Tag.Lookup(kind); !has {
				continue
			}
			tried++
			t.Run(field.path()+"/"+kind, func(t *testing.T) {
				outside, path, message := violate(t, field, kind)
				problems := problemsOf(t, string(outside))
				if !find(problems, path, message) {
					t.Errorf("no problem %q at %s in:\n%.2000v", message, path, problems)
				}
			})
		}
	}
	if tried < 80 {
		t.Errorf("only %d tags tried", tried)
	}
}

func TestLimitsThemselvesAreTaken(t *testing.T) {
	for _, field := range exampleFields() {
		for _, kind := range []string{"minimum", "maximum"} {
			limit, has := field.field.Tag.Lookup(kind)
			if !has {
				continue
			}
			kindOf := baseOf(field.field.Type)
			if kindOf.Kind() == reflect.Map || kindOf.Kind() == reflect.Slice || kindOf.Kind() == reflect.String {
				continue
			}
			tree := exampleTree(t)
			replace(t, tree, field.place, scalarAt(t, kindOf, limit, 0))
			// Other rules may refuse it still: the limit of one field is beyond that of another.
			_, err := Parse(marshal(t, tree), "f.yaml", fourCores)
			var problems Problems
			if errors.As(err, &problems) && find(problems, field.path(), "must be "+describeBounds(field.field.Tag)) {
				t.Errorf("%s: the %s %s itself is refused: %v", field.path(), kind, limit, err)
			}
		}
	}
}

// violate returns the example with one bound broken, and where and how it is reported.
func violate(t *testing.T, field leaf, kind string) (text []byte, path, message string) {
	tree := exampleTree(t)
	path = field.path()
	limit := field.field.Tag.Get(kind)
	of := baseOf(field.field.Type)
	switch kind {
	case "required":
		around, _ := lookup(tree, field.place[:len(field.place)-1])
		delete(around.(map[string]any), field.place[len(field.place)-1].(string))
		return marshal(t, tree), path, "is missing"
	case "enum":
		var wrong any = "nonsense"
		if of.Kind() == reflect.Int {
			wrong = 99
		}
		replace(t, tree, field.place, wrong)
		return marshal(t, tree), path, "must be " + oneOf(strings.Split(limit, ","))
	case "pattern":
		replace(t, tree, field.place, "-Bad\n")
		return marshal(t, tree), path, textPatterns[limit].requirement
	case "keys":
		section, _ := lookup(tree, field.place)
		section.(map[string]any)["-Bad "] = "x"
		return marshal(t, tree), path + `."-Bad "`, textPatterns[limit].requirement
	}
	by := 1
	if kind == "minimum" {
		by = -1
	}
	if kind == "above" {
		by = 0
	}
	switch of.Kind() {
	case reflect.String, reflect.Map, reflect.Slice:
		count, err := strconv.Atoi(limit)
		if err != nil {
			t.Fatal(err)
		}
		replace(t, tree, field.place, collection(of, count+by))
		message = fmt.Sprintf("is %d ", count+by)
	default:
		replace(t, tree, field.place, scalarAt(t, of, limit, by))
		message = map[string]string{"minimum": "at least ", "maximum": "at most ", "above": "more than "}[kind] + limit
		if by < 0 && strings.HasPrefix(limit, "0") && (of == durationType || of == sizeType) {
			message = "is not a"
		}
	}
	return marshal(t, tree), path, message
}

func baseOf(of reflect.Type) reflect.Type {
	if of.Kind() == reflect.Pointer {
		return of.Elem()
	}
	return of
}

// scalarAt returns the limit, moved by the smallest step of its type.
func scalarAt(t *testing.T, of reflect.Type, limit string, by int) any {
	t.Helper()
	switch {
	case of == durationType:
		duration, err := ParseDuration(limit)
		if err != nil {
			t.Fatal(err)
		}
		duration += time.Duration(by) * time.Microsecond
		return strconv.FormatFloat(duration.Seconds(), 'f', 6, 64) + "s"
	case of == sizeType:
		size, err := parseSize(limit)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%dB", int64(size)+int64(by))
	case of.Kind() == reflect.Int:
		number, err := strconv.Atoi(limit)
		if err != nil {
			t.Fatal(err)
		}
		return number + by
	case of.Kind() == reflect.Float64:
		number, err := strconv.ParseFloat(limit, 64)
		if err != nil {
			t.Fatal(err)
		}
		if by == 0 {
			return number
		}
		return number + float64(by)/1024
	}
	t.Fatalf("no value for %v", of)
	return nil
}

// collection returns a text, list or mapping of this length.
func collection(of reflect.Type, length int) any {
	switch of.Kind() {
	case reflect.String:
		return strings.Repeat("x", length)
	case reflect.Slice:
		list := make([]any, length)
		for i := range list {
			list[i] = elementOf(of.Elem(), i)
		}
		return list
	}
	mapping := map[string]any{}
	for i := range length {
		mapping[fmt.Sprintf("x%d", i)] = elementOf(of.Elem(), i)
	}
	return mapping
}

func elementOf(of reflect.Type, i int) any {
	switch of {
	case reflect.TypeFor[Step]():
		return map[string]any{"name": fmt.Sprintf("x%d", i), "run": []string{"x"}}
	case reflect.TypeFor[Quarantine]():
		return map[string]any{"target": fmt.Sprintf("x%d", i), "until": "2026-12-31", "why": "x"}
	case reflect.TypeFor[AdapterUse]():
		return map[string]any{"adapter": "go"}
	case reflect.TypeFor[Input]():
		return map[string]any{"files": []string{"x"}}
	case reflect.TypeFor[AuthorQuota]():
		return map[string]any{"who": []any{"x"}, "steps": 1}
	case reflect.TypeFor[TeamQuota]():
		return map[string]any{"name": fmt.Sprintf("x%d", i), "who": []any{"x"}, "steps": 1}
	case reflect.TypeFor[RunsOn]():
		return map[string]any{"targets": []string{"x"}, "labels": []string{"x"}}
	case reflect.TypeFor[Pool]():
		return map[string]any{"workers": 1}
	case reflect.TypeFor[Publisher]():
		return map[string]any{"keys": []string{exampleKey}}
	case reflect.TypeFor[ClaimSet]():
		return map[string]any{"all": map[string]any{"groups": "x"}}
	case reflect.TypeFor[AccessRule]():
		return map[string]any{"role": "viewer", "issuer": "company", "any": []any{map[string]any{"all": map[string]any{"groups": "x"}}}}
	case reflect.TypeFor[Repository]():
		return map[string]any{"url": fmt.Sprintf("x%d", i)}
	case reflect.TypeFor[int]():
		return i + 1
	case reflect.TypeFor[Secret]():
		return map[string]any{"file": fmt.Sprintf("/x%d", i)}
	case reflect.TypeFor[Webhook]():
		return map[string]any{"url": "https://bot.example.com", "secret": map[string]any{"file": "/x"}}
	case reflect.TypeFor[Host]():
		return map[string]any{"kind": "gitea", "url": "https://git.example.com", "token": map[string]any{"file": "/x"}, "secret": map[string]any{"file": "/x"}, "queues": map[string]any{"main": "acme/shop"}}
	case reflect.TypeFor[Issuer]():
		return map[string]any{"url": fmt.Sprintf("https://x%d", i), "client_id": "x"}
	case reflect.TypeFor[Cache]():
		return map[string]any{"variable": fmt.Sprintf("X%d", i)}
	case reflect.TypeFor[Queue]():
		return map[string]any{"repository": "shop", "branch": fmt.Sprintf("x%d", i)}
	}
	return fmt.Sprintf("x%d:1", i)
}
