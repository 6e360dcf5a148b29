package bazelgraph

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// The output of bazel query --output=proto is a blaze_query.QueryResult, as in src/main/protobuf/build.proto of
// Bazel. It is read here field by field: what a field means is needed of a few, and of all others only that
// they enter the hash, those that a newer Bazel adds too.

// answer is what Bazel says of the packages of a tree.
type answer struct {
	rules   []rule
	sources []source
	groups  []group
}

// rule is one rule, after macros and globs.
type rule struct {
	label label
	class string
	// digest covers all that Bazel says of the rule but where it stands.
	digest [sha256.Size]byte
	// inputs and outputs are labels, as printed.
	inputs, outputs []string
	// definition are the Starlark frames that defined the rule's class, outermost first; none for a native rule.
	definition []string
	// visibility are labels, as printed.
	visibility []string
	manual     bool
}

// source is a file of a package that some rule or exports_files names, or a BUILD file.
type source struct {
	label      label
	digest     [sha256.Size]byte
	visibility []string
	// loads are the labels of the .bzl files behind a BUILD file; older versions of Bazel give them.
	loads []string
	// broken: the package has errors.
	broken bool
}

// group is a package_group or an environment_group.
type group struct {
	label    label
	digest   [sha256.Size]byte
	includes []string
}

// errOdd is wrapped by the error about an output that is not what Bazel is known to print.
var errOdd = errors.New("the output of bazel query cannot be decoded")

// errCutShort is the error for an output that ends within a target.
var errCutShort = errors.New("it is cut short")

func odd(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errOdd, fmt.Sprintf(format, args...))
}

// maxTarget bounds one target of the output, in bytes.
const maxTarget = 64 << 20

// decode reads a whole output. After an error nothing of it may be used.
func decode(output io.Reader) (*answer, error) {
	in := bufio.NewReaderSize(output, 1<<16)
	a := &answer{}
	var buffer []byte
	for {
		tag, err := binary.ReadUvarint(in)
		if errors.Is(err, io.EOF) {
			return a, nil
		}
		if err != nil {
			return nil, cutShort(err)
		}
		if number, kind := protowire.DecodeTag(tag); number != 1 || kind != protowire.BytesType {
			return nil, odd("field %d of wire type %d where a target should be", number, kind)
		}
		length, err := binary.ReadUvarint(in)
		if err != nil {
			return nil, cutShort(err)
		}
		if length > maxTarget {
			return nil, odd("a target of %d bytes, at most %d are read", length, maxTarget)
		}
		// A length is a claim; memory is taken for what comes.
		body := bytes.NewBuffer(buffer[:0])
		if _, err := io.CopyN(body, in, int64(length)); err != nil {
			return nil, cutShort(err)
		}
		buffer = body.Bytes()
		if err := a.target(buffer); err != nil {
			return nil, err
		}
	}
}

func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %w", errOdd, errCutShort)
	}
	return fmt.Errorf("read the output of bazel query: %w", err)
}

// field is one field of a message, with the bytes that it is written in.
type field struct {
	number protowire.Number
	kind   protowire.Type
	raw    []byte // tag and value
	value  []byte // of a field that has a length
	varint uint64
}

// fields calls visit for each field of a message.
func fields(message []byte, visit func(field) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return odd("%v", protowire.ParseError(n))
		}
		m := protowire.ConsumeFieldValue(number, kind, message[n:])
		if m < 0 {
			return odd("field %d: %v", number, protowire.ParseError(m))
		}
		f := field{number: number, kind: kind, raw: message[:n+m]}
		switch kind {
		case protowire.BytesType:
			f.value, _ = protowire.ConsumeBytes(message[n:])
		case protowire.VarintType:
			f.varint, _ = protowire.ConsumeVarint(message[n:])
		}
		if err := visit(f); err != nil {
			return err
		}
		message = message[n+m:]
	}
	return nil
}

// Numbers of fields in build.proto.
const (
	targetType, targetRule, targetSource, targetGenerated, targetGroup, targetEnvironments = 1, 2, 3, 4, 5, 6

	ruleName, ruleClass, ruleLocation, ruleAttribute, ruleInput, ruleOutput = 1, 2, 3, 4, 5, 6
	// Of an old Bazel a location, of a newer one the hash of the Starlark behind the rule's class, which says
	// less than the files do and is empty since Bazel 7.
	ruleOldLocation, ruleStarlarkHash                = 8, 12
	ruleInstantiation, ruleDefinition                = 13, 14
	attributeName, attributeText, attributeTexts     = 1, 5, 6
	attributeLocation                                = 12
	sourceName, sourceLocation, sourceLoads          = 1, 2, 3
	sourceVisibility, sourceOldLocation, sourceError = 5, 7, 9
	groupName, groupIncludes, groupLocation          = 1, 3, 4
)

func (a *answer) target(message []byte) error {
	var kind uint64
	var body [targetEnvironments + 1][]byte
	err := fields(message, func(f field) error {
		if f.number == targetType {
			kind = f.varint
		} else if f.number <= targetEnvironments && f.kind == protowire.BytesType {
			body[f.number] = f.value
		}
		return nil
	})
	if err != nil {
		return err
	}
	// The discriminator n is about field n+1.
	if kind < 1 || kind >= targetEnvironments || body[kind+1] == nil {
		return odd("a target of unknown type %d", kind)
	}
	switch kind + 1 {
	case targetRule:
		return a.rule(body[targetRule])
	case targetSource:
		return a.source(body[targetSource])
	case targetGroup:
		return a.group(body[targetGroup], groupIncludes)
	case targetEnvironments:
		return a.group(body[targetEnvironments], 0)
	}
	return nil // Rules list what they generate.
}

// digester hashes fields, each with the bytes that it is written in, which say how long it is.
type digester struct{ list [][]byte }

func (d *digester) add(raw []byte) { d.list = append(d.list, raw) }

func (d *digester) sum() [sha256.Size]byte {
	h := sha256.New()
	for _, raw := range d.list {
		h.Write(raw)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

func workspaceLabel(what, text string) (label, error) {
	l, ok := parseLabel(text)
	if !ok || l.repository != "" {
		return label{}, odd("%s named %q", what, text)
	}
	return l, nil
}

// attribute is an attribute of a rule with the bytes that it is written in.
type attribute struct {
	name  string
	bytes []byte
}

func (a *answer) rule(message []byte) error {
	var r rule
	var d digester
	var name string
	var attributes []attribute
	err := fields(message, func(f field) error {
		switch f.number {
		case ruleName:
			name = string(f.value)
		case ruleClass:
			r.class = string(f.value)
		case ruleLocation, ruleOldLocation, ruleStarlarkHash, ruleInstantiation:
			return nil
		case ruleInput:
			r.inputs = append(r.inputs, string(f.value))
			return nil
		case ruleOutput:
			r.outputs = append(r.outputs, string(f.value))
			return nil
		case ruleDefinition:
			r.definition = append(r.definition, string(f.value))
			return nil
		case ruleAttribute:
			attribute, err := r.attribute(f.value)
			attributes = append(attributes, attribute)
			return err
		}
		d.add(f.raw)
		return nil
	})
	if err != nil {
		return err
	}
	if r.label, err = workspaceLabel("a rule", name); err != nil {
		return err
	}
	if r.class == "" {
		return odd("the rule %s has no class", name)
	}
	slices.SortStableFunc(attributes, func(x, y attribute) int { return cmp.Compare(x.name, y.name) })
	for _, attribute := range attributes {
		d.add(protowire.AppendBytes(nil, attribute.bytes))
	}
	slices.Sort(r.inputs)
	slices.Sort(r.outputs)
	for _, label := range r.inputs {
		d.add(protowire.AppendString([]byte{'<'}, label))
	}
	for _, label := range r.outputs {
		d.add(protowire.AppendString([]byte{'>'}, label))
	}
	r.digest = d.sum()
	a.rules = append(a.rules, r)
	return nil
}

// attribute takes from an attribute what the graph needs, and gives the bytes that enter the hash: all but
// where it stands in the file.
func (r *rule) attribute(message []byte) (attribute, error) {
	a := attribute{}
	var texts []string
	var kept []byte
	err := fields(message, func(f field) error {
		switch f.number {
		case attributeName:
			a.name = string(f.value)
		case attributeTexts:
			texts = append(texts, string(f.value))
		case attributeLocation:
			return nil
		case attributeText:
			if a.name == "generator_location" { // Names come first.
				return nil
			}
		}
		kept = append(kept, f.raw...)
		return nil
	})
	switch a.name {
	case "visibility":
		r.visibility = texts
	case "tags":
		r.manual = slices.Contains(texts, "manual")
	}
	a.bytes = kept
	return a, err
}

func (a *answer) source(message []byte) error {
	var s source
	var d digester
	var name string
	err := fields(message, func(f field) error {
		switch f.number {
		case sourceName:
			name = string(f.value)
		case sourceLocation, sourceOldLocation:
			return nil
		case sourceLoads:
			s.loads = append(s.loads, string(f.value))
			return nil
		case sourceVisibility:
			s.visibility = append(s.visibility, string(f.value))
		case sourceError:
			s.broken = f.varint != 0
		}
		d.add(f.raw)
		return nil
	})
	if err != nil {
		return err
	}
	if s.label, err = workspaceLabel("a source file", name); err != nil {
		return err
	}
	s.digest = d.sum()
	a.sources = append(a.sources, s)
	return nil
}

func (a *answer) group(message []byte, includes protowire.Number) error {
	var g group
	var d digester
	var name string
	err := fields(message, func(f field) error {
		switch {
		case f.number == groupName:
			name = string(f.value)
		case includes != 0 && f.number == includes:
			g.includes = append(g.includes, string(f.value))
		case includes != 0 && f.number == groupLocation:
			return nil
		}
		d.add(f.raw)
		return nil
	})
	if err != nil {
		return err
	}
	if g.label, err = workspaceLabel("a group", name); err != nil {
		return err
	}
	g.digest = d.sum()
	a.groups = append(a.groups, g)
	return nil
}

// isBuildFile reports whether a name is that of a BUILD file.
func isBuildFile(name string) bool { return name == "BUILD" || name == "BUILD.bazel" }

// framePath returns the file of a Starlark frame, "file:line:column: function".
func framePath(frame string) (string, bool) {
	for _, ending := range []string{".bzl:", ".scl:"} {
		if i := strings.Index(frame, ending); i >= 0 {
			return frame[:i+len(ending)-1], true
		}
	}
	return "", false
}
