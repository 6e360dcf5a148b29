package release

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/buildgraph"
	"landfall.build/platform/configuration"
	"landfall.build/platform/snapshot"
	"landfall.build/services/historian/warehouse"
	"landfall.build/tools/embedded/broker"
)

// OldestBeside is the oldest release whose processes may run on one log with this one's. It rises only where a release writes what that
// one cannot read (decision 0102).
const OldestBeside = "0.1.0"

// Compatibility is what a release reads and writes.
type Compatibility struct {
	Version string `json:"version"`
	// Beside is the oldest release whose processes may run on one log with this one's.
	Beside string `json:"runs_beside"`
	Events Events `json:"events"`
	// Snapshots are the formats of services' snapshots that it opens; it writes the newest.
	Snapshots Range `json:"snapshots"`
	// Configuration are the versions of landfall.config.yaml that it reads.
	Configuration Range `json:"configuration"`
	// DataDirectory are the formats of the embedded broker's directory.
	DataDirectory Range `json:"data_directory"`
	// HistoryMigrations is how many migrations of ClickHouse's tables it knows: it refuses tables that have had more.
	HistoryMigrations int `json:"history_migrations"`
	// Schemes are how targets are named and hashed, by adapter. Where releases differ in the one of a queue, nothing that one has built is a
	// proof for the other.
	Schemes map[string]string `json:"target_schemes"`
}

// Events is the schema of the log.
type Events struct {
	Package string   `json:"package"`
	Topics  []string `json:"topics"`
	// Digest is of all types with their fields: two releases of one digest write the same.
	Digest string `json:"digest"`
	// Types lists the fields of each type, as "number name kind".
	Types map[string][]string `json:"types"`
}

// Range is from the oldest to the newest, which is written.
type Range struct {
	Oldest int `json:"oldest"`
	Newest int `json:"newest"`
}

func (r Range) String() string {
	if r.Oldest == r.Newest {
		return strconv.Itoa(r.Newest)
	}
	return fmt.Sprintf("%d to %d", r.Oldest, r.Newest)
}

// Of returns the compatibility of this code.
func Of(version string) Compatibility {
	schema := eventsv1.File_events_v1_log_proto.Package()
	c := Compatibility{
		Version: version, Beside: OldestBeside,
		Events:        Events{Package: string(schema), Types: Types(protoregistry.GlobalFiles, schema)},
		Snapshots:     Range{snapshot.OldestFormat, snapshot.Format},
		Configuration: configurations(), DataDirectory: Range{broker.FormatVersion, broker.FormatVersion},
		HistoryMigrations: warehouse.Migrations(), Schemes: map[string]string{},
	}
	for _, t := range events.Topics() {
		c.Events.Topics = append(c.Events.Topics, t.Name)
	}
	digest := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(c.Events.Types)) {
		fmt.Fprintln(digest, name, strings.Join(c.Events.Types[name], "; "))
	}
	c.Events.Digest = hex.EncodeToString(digest.Sum(nil)[:8])
	for adapter, scheme := range buildgraph.Schemes() {
		c.Schemes[string(adapter)] = scheme
	}
	return c
}

// configurations reads which versions a configuration may have from the rule that validates it.
func configurations() Range {
	field, _ := reflect.TypeFor[configuration.Configuration]().FieldByName("Version")
	var versions []int
	for text := range strings.SplitSeq(field.Tag.Get("enum"), ",") {
		if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil {
			versions = append(versions, n)
		}
	}
	if len(versions) == 0 {
		return Range{}
	}
	return Range{slices.Min(versions), slices.Max(versions)}
}

// Types returns the fields of each message of a package, and the values of each enum.
func Types(files *protoregistry.Files, schema protoreflect.FullName) map[string][]string {
	out := map[string][]string{}
	files.RangeFilesByPackage(schema, func(f protoreflect.FileDescriptor) bool {
		addMessages(out, f.Messages())
		addEnums(out, f.Enums())
		return true
	})
	return out
}

func addMessages(out map[string][]string, messages protoreflect.MessageDescriptors) {
	for i := range messages.Len() {
		m := messages.Get(i)
		fields := []string{}
		for j := range m.Fields().Len() {
			f := m.Fields().Get(j)
			kind := f.Kind().String()
			switch {
			case f.Message() != nil:
				kind = string(f.Message().FullName().Name())
			case f.Enum() != nil:
				kind = string(f.Enum().FullName().Name())
			}
			if f.Cardinality() == protoreflect.Repeated {
				kind = "repeated " + kind
			}
			fields = append(fields, fmt.Sprintf("%d %s %s", f.Number(), f.Name(), kind))
		}
		slices.Sort(fields)
		out[string(m.FullName())] = fields
		addMessages(out, m.Messages())
		addEnums(out, m.Enums())
	}
}

func addEnums(out map[string][]string, enums protoreflect.EnumDescriptors) {
	for i := range enums.Len() {
		e := enums.Get(i)
		values := []string{}
		for j := range e.Values().Len() {
			values = append(values, fmt.Sprintf("%d %s", e.Values().Get(j).Number(), e.Values().Get(j).Name()))
		}
		slices.Sort(values)
		out[string(e.FullName())] = values
	}
}

// Write prints it for people.
func (c Compatibility) Write(out io.Writer) error {
	var schemes []string
	for _, adapter := range slices.Sorted(maps.Keys(c.Schemes)) {
		schemes = append(schemes, c.Schemes[adapter])
	}
	_, err := fmt.Fprintf(out, `landfall %s
runs beside         releases since %s, in one deployment, in any order
events              %s, %d types, digest %s; other types are stepped over, other fields are kept
topics              %d
snapshots           opens format %s, writes %d; others are dropped, and the log is read from its beginning
configuration       version %s; fields that it does not know are refused
data directory      of landfall up: format %s; others are refused
history             ClickHouse tables with %d migrations or fewer; it adds what lacks, and refuses newer ones
targets are hashed  by %s
`, c.Version, c.Beside, c.Events.Package, len(c.Events.Types), c.Events.Digest, len(c.Events.Topics), c.Snapshots, c.Snapshots.Newest,
		c.Configuration, c.DataDirectory, c.HistoryMigrations, strings.Join(schemes, ", "))
	return err
}
