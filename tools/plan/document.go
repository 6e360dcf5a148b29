package plan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// document is a snapshot as it is written, not yet checked: times are text, durations are in seconds.
type document struct {
	Now             string         `json:"now"`
	Slots           number         `json:"slots"`
	Threshold       number         `json:"threshold"`
	AbortThreshold  number         `json:"abort_threshold"`
	BypassThreshold number         `json:"bypass_threshold"`
	Changes         []changeForm   `json:"changes"`
	Conflicts       []conflictForm `json:"conflicts"`
	Builds          []buildForm    `json:"builds"`
}

type changeForm struct {
	ID       string        `json:"id"`
	Admitted string        `json:"admitted"`
	Success  number        `json:"success"`
	Duration *durationForm `json:"duration"`
	Benefit  number        `json:"benefit"`
	Requires []string      `json:"requires"`
	Held     bool          `json:"held"`
	Classes  [][]string    `json:"classes"`
}

type durationForm struct {
	Mean number `json:"mean"`
	Std  number `json:"std"`
}

type conflictForm struct {
	Ahead         string `json:"ahead"`
	Behind        string `json:"behind"`
	Probability   number `json:"probability"`
	MergeConflict bool   `json:"merge_conflict"`
}

type buildForm struct {
	Change  string   `json:"change"`
	Assumed []string `json:"assumed"`
	State   string   `json:"state"`
	Failed  []number `json:"failed"`
	Started string   `json:"started"`
}

// number is a number that may be missing. If something else than a number is given, text holds it, and the check reports it with
// everything else that is wrong.
type number struct {
	value float64
	given bool
	text  string
}

// UnmarshalJSON never fails, because the decoder would stop at the first error.
func (n *number) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	n.given = true
	x, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		n.text = strings.TrimPrefix(string(raw), `"\u0000`)
		if len(n.text) < len(raw) {
			n.text = strings.TrimSuffix(n.text, `"`)
		}
		return nil
	}
	n.value = x
	return nil
}

// maxBytes bounds a snapshot. A dense queue of 1,000 changes takes some 40 MB.
const maxBytes = 1 << 28

// decode reads one JSON value. Fields that the format does not have are added to problems; a value of another form is an error.
func decode(in io.Reader, problems *problems) (*document, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxBytes {
		return nil, fmt.Errorf("the snapshot is larger than %d MiB", maxBytes>>20)
	}
	if !utf8.Valid(text) {
		return nil, errors.New("the snapshot is not UTF-8")
	}
	text = quoteNonNumbers(text)
	findRepeated(text, problems)
	d := &document{}
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	err = strict.Decode(d)
	if err != nil && strings.Contains(err.Error(), "unknown field") {
		problems.add("the snapshot", "%s: the format has no such field", strings.TrimPrefix(err.Error(), "json: "))
		d = &document{}
		err = json.Unmarshal(text, d)
	}
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return nil, fmt.Errorf("the snapshot does not have the form of one: %s is of the wrong type (%s)", cmp.Or(wrong.Field, "it"), wrong.Value)
	}
	if err != nil {
		return nil, fmt.Errorf("the snapshot is not JSON: %w", err)
	}
	if rest := bytes.TrimSpace(text[strict.InputOffset():]); len(rest) > 0 && len(problems.list) == 0 {
		return nil, errors.New("something follows the snapshot: it is one JSON object")
	}
	if d.Changes == nil {
		problems.add("the snapshot", "it has no changes; where nothing is pending that is []")
	}
	return d, nil
}

// findRepeated adds the fields that an object has twice to problems: the decoder would merge them. It ends at what is not JSON, which the
// decoder reports.
func findRepeated(text []byte, problems *problems) {
	in := json.NewDecoder(bytes.NewReader(text))
	type level struct {
		fields map[string]bool // nil in a list
		value  bool            // the next token is a field's value
	}
	open := []level{{}}
	for len(open) <= maxDepth {
		token, err := in.Token()
		if err != nil {
			return
		}
		inner := &open[len(open)-1]
		name, text := token.(string)
		switch {
		case token == json.Delim('}') || token == json.Delim(']'):
			open = open[:len(open)-1]
			continue
		case inner.fields != nil && !inner.value && text:
			if name = strings.ToLower(name); inner.fields[name] {
				problems.add("the snapshot", "an object has the field %q twice", shortened(name))
			}
			inner.fields[name], inner.value = true, true
			continue
		}
		inner.value = false
		switch token {
		case json.Delim('{'):
			open = append(open, level{fields: map[string]bool{}})
		case json.Delim('['):
			open = append(open, level{})
		}
	}
}

// maxDepth is more than the format has.
const maxDepth = 16

// nonNumbers are what programs write for numbers that JSON does not have.
var nonNumbers = []string{"-Infinity", "Infinity", "-inf", "inf", "-nan", "nan", "NaN"}

// quoteNonNumbers turns them into strings, so that the check can report them like any other bad number. The strings begin with a
// character that no id may have, so that they are refused where text belongs as well.
func quoteNonNumbers(text []byte) []byte {
	out := make([]byte, 0, len(text))
	inside := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		if inside {
			out = append(out, c)
			if c == '\\' && i+1 < len(text) {
				i++
				out = append(out, text[i])
			}
			inside = c != '"'
			continue
		}
		inside = c == '"'
		if c != '-' && c != 'I' && c != 'i' && c != 'N' && c != 'n' {
			out = append(out, c)
			continue
		}
		word := ""
		for _, w := range nonNumbers {
			if bytes.HasPrefix(text[i:], []byte(w)) {
				word = w
				break
			}
		}
		if word == "" {
			out = append(out, c)
			continue
		}
		out = append(append(append(out, `"\u0000`...), word...), '"')
		i += len(word) - 1
	}
	return out
}
