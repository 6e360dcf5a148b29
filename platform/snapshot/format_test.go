package snapshot_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "landfall.build/engine/snapshotv1"
	"landfall.build/platform/snapshot"
)

var update = flag.Bool("update", false, "write the fields of the present format")

// TestTheFormatIsThatOfTheMessages: a field more, or another one, is another format, so that a release that does not know it
// refuses what was kept with it.
func TestTheFormatIsThatOfTheMessages(t *testing.T) {
	var fields []string
	protoregistry.GlobalFiles.RangeFilesByPackage("landfall.snapshots.v1", func(f protoreflect.FileDescriptor) bool {
		fields = append(fields, fieldsOf(f.Messages())...)
		return true
	})
	slices.Sort(fields)
	text := strings.Join(fields, "\n") + "\n"
	name := fmt.Sprintf("testdata/format-%d.txt", snapshot.Format)
	if *update {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	frozen, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(frozen) != text {
		t.Errorf("the messages are not those of format %d: raise snapshot.Format, run the test with -update, and keep the file of the format before; see what an older snapshot lacks before OldestFormat lets it in", snapshot.Format)
	}
	for format := snapshot.OldestFormat; format <= snapshot.Format; format++ {
		if _, err := os.Stat(fmt.Sprintf("testdata/format-%d.txt", format)); err != nil {
			t.Errorf("the fields of format %d, which is opened, are not kept: %v", format, err)
		}
	}
}

func fieldsOf(messages protoreflect.MessageDescriptors) (list []string) {
	for i := range messages.Len() {
		m := messages.Get(i)
		for j := range m.Fields().Len() {
			f := m.Fields().Get(j)
			kind := f.Kind().String()
			if f.Message() != nil {
				kind = string(f.Message().FullName())
			}
			list = append(list, fmt.Sprintf("%s.%s = %d %s %s", m.FullName(), f.Name(), f.Number(), f.Cardinality(), kind))
		}
		list = append(list, fieldsOf(m.Messages())...)
	}
	return list
}
