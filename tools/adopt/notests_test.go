package adopt

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestARepositoryWithoutPythonTestsIsNotRed: pytest ends with 5 where it finds no test, as unittest does by now. The step of the whole
// repository takes that as the steps of targets do. Whatever else goes wrong fails it.
func TestARepositoryWithoutPythonTestsIsNotRed(t *testing.T) {
	python, err := exec.LookPath("python")
	if err == nil && !importsPytest(t.Context(), python) {
		err = os.ErrNotExist
	}
	if err != nil {
		if os.Getenv("LANDFALL_TEST_MODULES") == "required" {
			t.Fatal("python with pytest: ", err)
		}
		t.Skip("python with pytest: ", err)
	}
	lines := map[string]string{}
	none := reader{ctx: t.Context(), files: map[string]bool{}, read: func(context.Context, string) string { return "" }}
	lines["pytest"] = wholePython(none, ".")
	lines["unittest"] = pythonCommand(none, ".", "")
	for name, c := range map[string]struct {
		files map[string]string
		green bool
	}{
		"no test":           {map[string]string{"shop.py": "x = 1\n"}, true},
		"a test that fails": {map[string]string{"test_shop.py": "import unittest\n\nclass TestShop(unittest.TestCase):\n    def test_one(self):\n        assert 1 == 2\n"}, false},
		"a test that exits": {map[string]string{"test_shop.py": "import os\nos._exit(4)\n"}, false},
		"a wrong import":    {map[string]string{"test_shop.py": "import nothing_of_that_name\n"}, false},
	} {
		for tool, line := range lines {
			dir := t.TempDir()
			for file, text := range c.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			run := exec.Command("sh", "-c", line)
			run.Dir = dir
			if out, err := run.CombinedOutput(); (err == nil) != c.green {
				t.Errorf("%s, %s: %v\n%s", name, tool, err, out)
			}
		}
	}
	if programs := programsOf(lines["pytest"]); len(programs) != 1 || programs[0] != "python" {
		t.Errorf("the line runs %q", programs)
	}
}
