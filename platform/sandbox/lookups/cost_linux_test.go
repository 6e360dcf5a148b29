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
	script := []string{"-c", "echo; read line", strings.Repeat("a", 100<<10)}
	for _, c := range []struct {
		name  string
		words []string
		known int
	}{
		{"long", script, 5}, // with its name, and what follows the last end of a word
		{"longer than is read", append(script, slices.Repeat(script[2:], 11)...), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			command := exec.Command("sh", c.words...)
			held, err := command.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			says, err := command.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			_, err = says.Read(make([]byte, 1)) // before it runs, it has no command line
			words := process{id: command.Process.Pid}.words()
			held.Close()
			_ = command.Wait()
			if err != nil || len(words) != c.known {
				t.Errorf("%d words are known, want %d (%v)", len(words), c.known, err)
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
	for folder, pattern := range map[string]string{"long": strings.Repeat("a", mostManifest-100), "all": "* a.txt"} {
		first := filepath.Join(w.root, folder, "0.go")
		if err := os.Mkdir(filepath.Dir(first), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(first, []byte("package p\n//go:embed "+pattern+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		for i := range 300 {
			if err := os.Link(first, filepath.Join(w.root, folder, fmt.Sprintf("%d.go", i+1))); err != nil {
				t.Fatal(err)
			}
		}
		if got := w.embeds(folder); !slices.Equal(got, []string{"*"}) {
			t.Errorf("of the folder %q there are %d patterns", folder, len(got))
		}
	}
	code.Reset()
	code.WriteString("package p\n" + strings.Repeat("//\n", mostManifest/4))
	if err := os.Mkdir(filepath.Join(w.root, "code"), 0o777); err != nil {
		t.Fatal(err)
	}
	for i := range mostCode/code.Len() + 1 {
		if err := os.WriteFile(filepath.Join(w.root, "code", fmt.Sprintf("%d.go", i)), []byte(code.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.embeds("code"); !slices.Equal(got, []string{"*"}) {
		t.Errorf("of a folder with more code than is read there are %d patterns", len(got))
	}
}
