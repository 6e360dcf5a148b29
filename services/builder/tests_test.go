package builder

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"landfall.build/platform/journal/memory"
)

// TestAStepThatPassesSaysHowManyTestsItRan: with a real pytest, which ends with 5 where a conftest.py or its settings leave out all tests.
func TestAStepThatPassesSaysHowManyTestsItRan(t *testing.T) {
	tools := filepath.Join(t.TempDir(), "tools")
	python := filepath.Join(tools, "bin", "python")
	var prefix []byte
	for _, argv := range [][]string{
		{"python3", "-m", "venv", tools}, {python, "-m", "pip", "install", "--quiet", "pytest"}, {python, "-c", "import sys; print(sys.base_prefix, end='')"},
	} {
		out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
		if err != nil && os.Getenv("LANDFALL_TEST_MODULES") == "required" {
			t.Fatalf("%q: %v\n%s", argv, err, out)
		} else if err != nil {
			t.Skipf("%q: %v\n%s", argv, err, out)
		}
		prefix = out
	}
	pytest := python + " -B -m pytest -p no:cacheprovider . || test $? -eq 5\n"
	const two = "def test_one():\n    pass\n\n\ndef test_two():\n    pass\n"
	files := scripts(map[string]string{
		"tested": pytest, "conftest": pytest, "settings": pytest, "skipped": pytest,
		"several":  "(cd none; " + pytest + ") && (cd ../tested; " + pytest + ") && i=0; while [ $i -lt 3000 ]; do echo \"line $i of noise\"; i=$((i+1)); done\n",
		"unittest": python + " -B -m unittest\n", "other": "echo 3 passed in total, in a hurry in 5 ways\n",
	})
	for name, text := range map[string]string{
		"tested/test_a.py": two, "conftest/test_a.py": two, "settings/test_a.py": two, "conftest/conftest.py": "collect_ignore_glob = [\"*\"]\n",
		"settings/pytest.ini": "[pytest]\naddopts = --ignore=test_a.py\n", "several/none/pytest.ini": "[pytest]\n",
		"skipped/test_a.py": "import pytest\n\npytestmark = pytest.mark.skip\n\n\n" + two, "unittest/test_a.py": "import unittest\n\n\nclass TestA(unittest.TestCase):\n    def test_one(self):\n        pass\n",
	} {
		files[name] = text
	}
	s := newSite(t, memory.Options{})
	queue := s.config.Queues[queueName]
	queue.Steps.Read = []string{tools, string(prefix)}
	s.config.Queues[queueName] = queue
	base := s.commit("", files)
	s.start("a")
	for _, c := range []struct {
		folder   string
		tests    uint32
		untested bool
	}{
		{"tested", 2, false}, {"conftest", 0, true}, {"settings", 0, true}, {"skipped", 0, true}, {"several", 2, true}, {"unittest", 1, false}, {"other", 0, false},
	} {
		if f := s.passes(c.folder, base, "//"+c.folder+":t"); f.Tests != c.tests || f.Untested != c.untested {
			t.Errorf("%s: it ran %d tests, untested %v\n%s", c.folder, f.Tests, f.Untested, f.OutputTail)
		}
	}
}
