package configuration

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
)

// What is taken is taken the same way again, has settings within bounds, and is
// taken by the schema too. What is refused is refused with Problems at lines that
// the file has.
func FuzzParse(f *testing.F) {
	example, err := os.ReadFile(examplePath)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	for _, seed := range []string{
		smallest, "", "- a", "version: 1\n...\n---\n", "a: [1, {b: c}]", "queues: {main: {retries: {failed: 1}}}",
		smallest + "broker:\n  brokers: [a:1, 'b:2']\n", smallest + "data: |\n  x\n", smallest + "builder: {memory_limit: ~}\n",
		"? a\n: b", "a: &x 1\nb: *x", "version: 0x1\n", "\"version\": 1", "version: 1 # one\n\tx: y", "a:\n  - b\n - c", "{", "a: 'b", "%",
	} {
		f.Add([]byte(seed))
	}
	schema := compileSchema(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse(text, "f.yaml", fourCores)
		if err != nil {
			var problems Problems
			if !errors.As(err, &problems) || len(problems) == 0 || len(problems) > maxProblems+1 {
				t.Fatalf("refused with %v", err)
			}
			lines := strings.Count(strings.ReplaceAll(string(text), "\r", "\n"), "\n") + 1
			for _, problem := range problems {
				if problem.Line < 0 || problem.Line > lines+1 || problem.Message == "" || strings.ContainsAny(problem.String(), "\n\x00") {
					t.Errorf("problem %+v of a file with %d lines", problem, lines)
				}
			}
			return
		}
		again, err := Parse(text, "f.yaml", fourCores)
		if err != nil || !reflect.DeepEqual(c, again) {
			t.Fatalf("taken, then %v, %+v, %+v", err, c, again)
		}
		for _, name := range c.QueueNames() {
			queue := c.Queues[name]
			if queue.Hash() != again.Queues[name].Hash() {
				t.Errorf("two hashes of queue %s", name)
			}
			if queue.Name != name || c.RepositoryOf(queue).URL == "" || queue.Workers < 1 || queue.Speculation.Candidates < queue.Workers ||
				queue.Speculation.AbortThreshold > queue.Speculation.Threshold || queue.Steps.Timeout <= 0 {
				t.Errorf("queue out of bounds: %+v", queue)
			}
		}
		if err := bySchema(t, schema, text); err != nil {
			t.Errorf("taken here, but not by the schema: %v", err)
		}
	})
}
