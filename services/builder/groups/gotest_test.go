package groups

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// A test finds what the go command writes to by /proc, and can write lines of its own there: of any number of packages, with paths and
// output as long as a line may be.
func TestWhatIsKeptOfBuildsIsBounded(t *testing.T) {
	long := strings.Repeat("x", maxLine/4)
	for name, one := range map[string]func(i int) goEvent{
		"paths": func(i int) goEvent {
			return goEvent{ImportPath: fmt.Sprint(long, i), Output: "case-insensitive import collision: "}
		},
		"output": func(i int) goEvent {
			return goEvent{ImportPath: fmt.Sprint(i), Output: "case-insensitive import collision: " + long}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := &goEvents{tally: NewTally([]string{"p"}, Trust{}), out: func(string, []byte) {}, builds: map[string][]byte{}, collides: map[string]bool{}}
			for i := range 2 * mostKept / len(long) {
				e := one(i)
				e.Action = "build-output"
				line, err := json.Marshal(e)
				if err != nil {
					t.Fatal(err)
				}
				g.line(line)
			}
			kept := 0
			for of, text := range g.builds {
				kept += len(of) + len(text)
			}
			for of := range g.collides {
				kept += len(of)
			}
			if kept > mostKept {
				t.Errorf("%d bytes are kept", kept)
			}
		})
	}
}
