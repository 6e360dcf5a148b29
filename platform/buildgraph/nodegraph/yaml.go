package nodegraph

import (
	"errors"
	"fmt"
	"strings"
)

// yamlValue is a text, a list or a mapping. The YAML that is read is what package managers write: blocks, brackets and
// quoted texts on one line, texts in blocks. A general parser takes hundreds of megabytes for a lock file.
type yamlValue struct {
	text   string
	items  []*yamlValue
	keys   []string
	values []*yamlValue
}

// yamlNesting bounds collections within each other.
const yamlNesting = 32

// errYAML is wrapped by the errors for YAML that is not read. It need not be wrong.
var errYAML = errors.New("this YAML is not understood")

// get returns the value of a key; an empty value if there is none.
func (v *yamlValue) get(key string) *yamlValue {
	for i, k := range v.keys {
		if k == key {
			return v.values[i]
		}
	}
	return &yamlValue{}
}

// each visits the fields of a mapping.
func (v *yamlValue) each(visit func(key string, value *yamlValue)) {
	for i, key := range v.keys {
		visit(key, v.values[i])
	}
}

// appendTo appends a form that has one meaning.
func (v *yamlValue) appendTo(text []byte) []byte {
	switch {
	case v.keys != nil:
		text = append(text, '{')
		for i, key := range v.keys {
			text = append(text, normalText("field", key)...)
			text = v.values[i].appendTo(text)
		}
		return append(text, '}')
	case v.items != nil:
		text = append(text, '[')
		for _, item := range v.items {
			text = item.appendTo(text)
		}
		return append(text, ']')
	}
	return append(text, normalText("text", v.text)...)
}

// yamlReader goes through the lines of a document.
type yamlReader struct {
	rest   string
	number int // of the line that line holds, from 1
	line   string
	indent int
	ended  bool
	depth  int
}

// parseYAML reads a document. line is that of the mistake.
func parseYAML(content []byte) (value *yamlValue, line int, err error) {
	r := &yamlReader{rest: strings.TrimPrefix(string(content), "\uFEFF")}
	r.next()
	if !r.ended && r.line == "---" {
		r.next()
	}
	if r.ended {
		return &yamlValue{}, 0, nil
	}
	value, err = r.block(r.indent)
	if err == nil && !r.ended {
		err = fmt.Errorf("%w: a line is indented as no other", errYAML)
	}
	return value, r.number, err
}

// next goes to the next line that holds something.
func (r *yamlReader) next() {
	for r.rest != "" {
		line, rest, _ := strings.Cut(r.rest, "\n")
		r.rest = rest
		r.number++
		line = strings.TrimRight(line, " \t\r")
		r.line = strings.TrimLeft(line, " ")
		r.indent = len(line) - len(r.line)
		if r.line != "" && r.line[0] != '#' {
			return
		}
	}
	r.ended = true
}

// block reads the collection whose lines are indented by that much.
func (r *yamlReader) block(indent int) (*yamlValue, error) {
	if r.depth++; r.depth > yamlNesting {
		return nil, fmt.Errorf("%w: it is nested too deeply", errYAML)
	}
	defer func() { r.depth-- }()
	v := &yamlValue{}
	isList := isListItem(r.line)
	for !r.ended && r.indent == indent && isListItem(r.line) == isList {
		if isList {
			item, err := r.item(indent)
			if err != nil {
				return nil, err
			}
			v.items = append(v.items, item)
			continue
		}
		key, value, err := r.field(indent)
		if err != nil {
			return nil, err
		}
		v.keys, v.values = append(v.keys, key), append(v.values, value)
	}
	return v, nil
}

func isListItem(line string) bool { return line == "-" || strings.HasPrefix(line, "- ") }

// item reads what stands behind a dash: a text, or a mapping that begins on its line.
func (r *yamlReader) item(indent int) (*yamlValue, error) {
	rest := strings.TrimLeft(r.line[1:], " ")
	if rest == "" {
		return r.value("", indent)
	}
	if isListItem(rest) {
		return nil, fmt.Errorf("%w: a list begins on the line of another", errYAML)
	}
	if _, _, err := cutKey(rest); err == nil && rest[0] != '{' && rest[0] != '[' {
		r.indent += len(r.line) - len(rest)
		r.line = rest
		return r.block(r.indent)
	}
	return r.value(rest, indent)
}

func (r *yamlReader) field(indent int) (string, *yamlValue, error) {
	if long, ok := strings.CutPrefix(r.line, "? "); ok {
		key, rest, err := cutScalar(long, "")
		if err != nil || rest != "" {
			return "", nil, fmt.Errorf("%w: a key in several lines", errYAML)
		}
		r.next()
		if r.ended || r.indent != indent || r.line[0] != ':' {
			return "", nil, fmt.Errorf("%w: a key without a value", errYAML)
		}
		value, err := r.value(strings.TrimLeft(r.line[1:], " "), indent)
		return key, value, err
	}
	key, rest, err := cutKey(r.line)
	if err != nil {
		return "", nil, err
	}
	value, err := r.value(rest, indent)
	return key, value, err
}

// cutKey cuts the key off a line.
func cutKey(line string) (key, rest string, err error) {
	if line[0] == '"' || line[0] == '\'' {
		key, rest, err = cutScalar(line, "")
		if err != nil || !strings.HasPrefix(rest, ":") || len(rest) > 1 && rest[1] != ' ' {
			return "", "", fmt.Errorf("%w: a line without a key", errYAML)
		}
		return key, strings.TrimLeft(rest[1:], " "), nil
	}
	if key, ok := strings.CutSuffix(line, ":"); ok && !strings.Contains(key, ": ") {
		return key, "", nil
	}
	key, rest, ok := strings.Cut(line, ": ")
	if !ok || strings.ContainsAny(key[:min(1, len(key))], "&*!|>%@`{[") {
		return "", "", fmt.Errorf("%w: a line without a key", errYAML)
	}
	return key, strings.TrimLeft(rest, " "), nil
}

// value reads what stands behind a key or dash, on its line or on those below.
func (r *yamlReader) value(rest string, indent int) (*yamlValue, error) {
	if strings.HasPrefix(rest, "#") {
		rest = ""
	}
	switch {
	case rest == "":
		r.next()
		if !r.ended && (r.indent > indent || r.indent == indent && isListItem(r.line)) {
			return r.block(r.indent)
		}
		return &yamlValue{}, nil
	case rest[0] == '|' || rest[0] == '>':
		return r.textBlock(indent), nil
	case strings.IndexByte("&*!%@`", rest[0]) >= 0:
		return nil, fmt.Errorf("%w: an anchor, alias or tag", errYAML)
	}
	isPlain := strings.IndexByte("\"'{[", rest[0]) < 0
	value, rest, err := r.inline(rest, "")
	if err == nil && rest != "" && !strings.HasPrefix(rest, "#") {
		err = fmt.Errorf("%w: more than one value on a line", errYAML)
	}
	if err == nil && isPlain && (strings.Contains(value.text, ": ") || strings.HasSuffix(value.text, ":")) {
		err = fmt.Errorf("%w: a mapping where a text was looked for", errYAML)
	}
	if r.next(); err == nil && !r.ended && r.indent > indent {
		err = fmt.Errorf("%w: a text in several lines", errYAML)
	}
	return value, err
}

// textBlock reads the lines below a | or >.
func (r *yamlReader) textBlock(indent int) *yamlValue {
	var text strings.Builder
	for r.rest != "" {
		line, rest, _ := strings.Cut(r.rest, "\n")
		bare := strings.TrimSpace(line)
		if bare != "" && len(line)-len(strings.TrimLeft(line, " ")) <= indent {
			break
		}
		r.rest = rest
		r.number++
		text.WriteString(line + "\n")
	}
	r.next()
	return &yamlValue{text: text.String()}
}

// inline reads a text, or a list or mapping in brackets, and returns what follows it. Inside brackets until ends a text.
func (r *yamlReader) inline(rest, until string) (*yamlValue, string, error) {
	if rest == "" {
		return nil, "", fmt.Errorf("%w: a value in several lines", errYAML)
	}
	if rest[0] != '{' && rest[0] != '[' {
		text, rest, err := cutScalar(rest, until)
		return &yamlValue{text: text}, rest, err
	}
	if r.depth++; r.depth > yamlNesting {
		return nil, "", fmt.Errorf("%w: it is nested too deeply", errYAML)
	}
	defer func() { r.depth-- }()
	v, isMap, end := &yamlValue{}, rest[0] == '{', "]"
	if isMap {
		end = "}"
	}
	rest = strings.TrimLeft(rest[1:], " ")
	for !strings.HasPrefix(rest, end) {
		var key string
		if isMap {
			var err error
			if key, rest, err = cutScalar(rest, ",:}"); err != nil || !strings.HasPrefix(rest, ":") {
				return nil, "", fmt.Errorf("%w: a key in braces without a value", errYAML)
			}
			rest = strings.TrimLeft(rest[1:], " ")
		}
		item, after, err := r.inline(rest, ","+end)
		if err != nil {
			return nil, "", err
		}
		if isMap {
			v.keys, v.values = append(v.keys, key), append(v.values, item)
		} else {
			v.items = append(v.items, item)
		}
		if rest = after; strings.HasPrefix(rest, ",") {
			rest = strings.TrimLeft(rest[1:], " ")
		} else if !strings.HasPrefix(rest, end) {
			return nil, "", fmt.Errorf("%w: brackets over several lines", errYAML)
		}
	}
	return v, strings.TrimLeft(rest[1:], " "), nil
}

// cutScalar cuts a text off a line, which ends at one of the bytes of until, or at a comment.
func cutScalar(rest, until string) (text, after string, err error) {
	if rest == "" {
		return "", "", fmt.Errorf("%w: a value in several lines", errYAML)
	}
	switch quote := rest[0]; quote {
	case '"', '\'':
		var b strings.Builder
		for i := 1; i < len(rest); i++ {
			switch c := rest[i]; {
			case c == '\'' && quote == '\'' && i+1 < len(rest) && rest[i+1] == '\'':
				b.WriteByte(c)
				i++
			case c == quote:
				return b.String(), strings.TrimLeft(rest[i+1:], " "), nil
			case c == '\\' && quote == '"':
				if i++; i >= len(rest) || strings.IndexByte(`"\/`, rest[i]) < 0 {
					return "", "", fmt.Errorf("%w: an escape in a text", errYAML)
				}
				b.WriteByte(rest[i])
			default:
				b.WriteByte(c)
			}
		}
		return "", "", fmt.Errorf("%w: a text over several lines", errYAML)
	}
	end := len(rest)
	for i := range len(rest) {
		if rest[i] == '#' && i > 0 && rest[i-1] == ' ' {
			end = i
			break
		}
		if strings.IndexByte(until, rest[i]) >= 0 && (rest[i] != ':' || i+1 == len(rest) || rest[i+1] == ' ') {
			end = i
			break
		}
	}
	return strings.TrimRight(rest[:end], " "), rest[end:], nil
}

// parsePnpmFile reads a pnpm-workspace.yaml.
func parsePnpmFile(content []byte) *pnpmFile {
	value, line, err := parseYAML(content)
	if err != nil {
		return &pnpmFile{problem: err.Error(), line: line}
	}
	w := &pnpmFile{}
	for _, item := range value.get("packages").items {
		w.packages = append(w.packages, item.text)
	}
	return w
}
