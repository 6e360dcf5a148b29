package adopt_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestARepositoryWithoutPythonTestsIsNotRed: pytest ends with 5 where it finds no test. The step of the whole repository takes that as the
// steps of targets do. Whatever else goes wrong fails it.
func TestARepositoryWithoutPythonTestsIsNotRed(t *testing.T) {
	need(t, "python3")
	tools := filepath.Join(t.TempDir(), "tools")
	fetch(t, "", "python3", "-m", "venv", tools)
	fetch(t, "", filepath.Join(tools, "bin", "pip"), "install", "--quiet", "pytest")
	t.Setenv("PATH", filepath.Join(tools, "bin")+":"+os.Getenv("PATH"))
	r := newRepository(t)
	r.commit("one", files{"pyproject.toml": "[project]\nname = \"shop\"\nversion = \"1.0\"\n", "shop/__init__.py": "# no test\n"})
	r.push()
	if out, err := r.init("--queue", "shop"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	steps := r.configured().Queues["shop"].Analysis.WholeRepositorySteps
	if len(steps) != 1 {
		t.Fatalf("the steps are %+v", steps)
	}
	for name, c := range map[string]struct {
		test  string
		green bool
	}{
		"no test": {"# none\n", true}, "a test that passes": {"def test_one():\n    pass\n", true}, "a test that fails": {"def test_one():\n    assert 1 == 2\n", false},
		"a test that exits": {"import os\nos._exit(4)\n", false}, "a wrong import": {"import nothing_of_that_name\n", false},
	} {
		put(t, r.clone, files{"test_shop.py": c.test})
		run := exec.Command(steps[0].Run[0], steps[0].Run[1:]...)
		run.Dir = r.clone
		if out, err := run.CombinedOutput(); (err == nil) != c.green {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
