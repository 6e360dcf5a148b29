package audit

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"landfall.build/tools/audit/audittest"
)

// TestTheAuditSeesAnIncludedFileThatGosCacheDoesNot has a red commit that go test of an importer calls green if it finds the
// assembled object of the commit before in its build cache.
func TestTheAuditSeesAnIncludedFileThatGosCacheDoesNot(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the assembly is for amd64")
	}
	if os.Getenv("LANDFALL_TEST_SLOW") == "" {
		t.Skip("each step compiles the standard library: LANDFALL_TEST_SLOW=1 has it run")
	}
	p := audittest.New(t)
	p.Commit("begin", map[string]string{
		"go.mod": "module m\n\ngo 1.26\n", "inc/consts.h": "#define ANSWER 42\n", "p/p.go": "package p\n\nfunc Answer() int64\n",
		"p/p_amd64.s": "#include \"../inc/consts.h\"\nTEXT ·Answer(SB),4,$0-8\n\tMOVQ $ANSWER, ret+0(FP)\n\tRET\n",
		"q/q_test.go": "package q\n\nimport (\n\t\"testing\"\n\n\t\"m/p\"\n)\n\nfunc Test(t *testing.T) {\n\tif got := p.Answer(); got != 42 {\n\t\tt.Fatal(got)\n\t}\n}\n",
	})
	red := p.Commit("another answer", map[string]string{"inc/consts.h": "#define ANSWER 43\n"})
	out, _, err := run(t, "--repo", p.Dir, "--retries", "0", "--env", "CGO_ENABLED=0", "--env", "GOCACHE="+t.TempDir())
	if !errors.As(err, &NotGreen{}) || !strings.Contains(out, red[:12]) || !strings.Contains(out, "red      m/q [test]") {
		t.Errorf("%v\n%s", err, out)
	}
}
