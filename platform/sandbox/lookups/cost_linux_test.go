//go:build amd64 || arm64

package lookups

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A process can take any of its memory for its command line (PR_SET_MM_MAP), pages that nobody has touched among it. The supervisor,
// whose memory is not the step's, would read all of it.
func TestACommandLineWithoutEndIsNotKnown(t *testing.T) {
	script := []string{"-c", "read line", strings.Repeat("a", 100<<10)}
	for _, c := range []struct {
		name  string
		words []string
		known bool
	}{
		{"long", script, true},
		{"longer than is read", append(script, slices.Repeat(script[2:], 11)...), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			command := exec.Command("sh", c.words...)
			held, err := command.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			words := process{id: command.Process.Pid}.words()
			held.Close()
			_ = command.Wait()
			if known := words != nil; known != c.known {
				t.Errorf("%d words are known", len(words))
			}
		})
	}
}

// A step can leave any number of files of Go in a folder, by links to one, and have the supervisor read what each embeds.
func TestWhatAFolderEmbedsIsBounded(t *testing.T) {
	w := New(t.TempDir(), Missing{})
	var code strings.Builder
	code.WriteString("package p\n//go:embed")
	for i := range mostEmbedded/2 + 1 {
		fmt.Fprintf(&code, " %d.txt", i)
	}
	few, many := filepath.Join(w.root, "few"), filepath.Join(w.root, "many")
	for folder, files := range map[string]int{few: 1, many: 2} {
		if err := os.Mkdir(folder, 0o777); err != nil {
			t.Fatal(err)
		}
		for i := range files {
			if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d.go", i)), []byte(code.String()), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := w.embeds("few"); len(got) != mostEmbedded/2+1 || got[1] != "1.txt" {
		t.Errorf("the folder embeds %d patterns", len(got))
	}
	if got := w.embeds("many"); !slices.Equal(got, []string{"*"}) {
		t.Errorf("of a folder with too many there are %d patterns", len(got))
	}
	if got := w.embeds("none"); len(got) > 0 {
		t.Errorf("a folder that is not there embeds %q", got)
	}
}
