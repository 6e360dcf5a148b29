package hosttest

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"landfall.build/services/builder/execution"
	"landfall.build/services/hosts"
)

// Variables of a test process: a rule that a fake does not keep, and the command that is tested, if it is built already.
const (
	breaksVariable = "LANDFALL_TEST_HOST_BREAKS"
	binaryVariable = "LANDFALL_TEST_HOST_BINARY"
)

// Breaks names the rule that a fake does not keep; "" for none.
func Breaks() string { return os.Getenv(breaksVariable) }

var folder string

// Main runs the tests of a package that tests a fake.
func Main(m *testing.M) {
	execution.MaybeSupervise()
	var err error
	if folder, err = os.MkdirTemp("", "landfall"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

// Binary returns the command that is tested. It is built for the first test that runs it.
var Binary = sync.OnceValue(func() string {
	if built := os.Getenv(binaryVariable); built != "" {
		return built
	}
	path, err := Build(folder)
	if err != nil {
		panic(err)
	}
	return path
})

// SkipUnlessSlow skips what waits for minutes, but in make test-all.
func SkipUnlessSlow(t *testing.T) {
	t.Helper()
	if os.Getenv("LANDFALL_TEST_SLOW") == "" {
		t.Skip("LANDFALL_TEST_SLOW is not set: the suite of code hosts takes minutes")
	}
}

// Breach is what the suite finds where a fake breaks a rule: the claim of a test, and what it says.
type Breach struct{ Claim, Says string }

// FindBreaches runs the suite of a test on its fake, which breaks one rule after the other, and checks that it fails.
func FindBreaches(t *testing.T, test string, rules map[string]Breach) {
	for rule, breach := range rules {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			c := exec.Command(os.Args[0], "-test.run", "^"+test+"$/^"+strings.ReplaceAll(breach.Claim, " ", "_")+"$")
			c.Env = append(os.Environ(), breaksVariable+"="+rule, binaryVariable+"="+Binary())
			out, err := c.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "never: ") || !strings.Contains(string(out), breach.Says) {
				t.Errorf("it ends with %v and says\n%s", err, out)
			}
		})
	}
}

// CheckFound checks that an examination has found what it was to find, by codes in order, and says what it is and what to do.
func CheckFound(t *testing.T, when string, found hosts.Examined, want ...string) {
	t.Helper()
	var got []string
	for _, p := range found.Problems {
		if got = append(got, p.Code); p.Message == "" || p.Advice == "" {
			t.Errorf("%s it finds %+v", when, p)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s it finds %v, want %v: %+v", when, got, want, found.Problems)
	}
}
