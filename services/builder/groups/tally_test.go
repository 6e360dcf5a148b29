package groups

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"landfall.build/events/seedtest"
)

func shown(list []Result) string {
	var words []string
	for _, r := range list {
		words = append(words, fmt.Sprintf("%s:%s", r.Label, [...]string{"nothing", "passed", "failed", "skipped"}[r.Outcome]))
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

func TestATargetHasPassedOnlyIfTheToolSaidSoOfThatTarget(t *testing.T) {
	const none, crash = 0, -1
	for _, c := range []struct {
		name    string
		trust   Trust
		reports string // "a+" passed, "a-" failed, "a~" skipped
		code    int
		early   string
		end     string
	}{
		{"nothing said, and exit code 0", Trust{}, "", none, "", "a:nothing b:nothing"},
		{"all passed", Trust{}, "a+ b+", none, "", "a:passed b:passed"},
		{"one of them", Trust{}, "a+", none, "", "a:passed b:nothing"},
		{"another one than was asked for", Trust{}, "a+ c+ B+", none, "", "a:passed b:nothing"},
		{"all passed, and the tool failed", Trust{}, "a+ b+", 1, "", "a:nothing b:nothing"},
		{"the tool failed for one that failed", Trust{}, "a+ b-", 1, "b:failed", "a:passed"},
		{"the tool failed for one that nobody asked for", Trust{}, "a+ b+ c-", 1, "", "a:nothing b:nothing"},
		{"the tool was ended", Trust{}, "a+ b-", crash, "b:failed", "a:nothing"},
		{"passed and failed", Trust{}, "a+ a- b+", 1, "a:failed", "b:passed"},
		{"failed and passed", Trust{}, "a- a+ b+", 1, "a:failed", "b:passed"},
		{"skipped", Trust{}, "a~ b+", none, "", "a:nothing b:passed"},
		{"skipped and passed", Trust{}, "a~ a+ b+", none, "", "a:nothing b:passed"},
		{"what streams counts at once, but for the last one", Trust{Streams: true}, "a+ b+", none, "a:passed", "b:passed"},
		{"what streams, and the tool failed", Trust{Streams: true}, "a+ b+", 1, "a:passed", "b:nothing"},
		{"what streams, and the tool was ended", Trust{Streams: true}, "a+ b+", crash, "a:passed", "b:nothing"},
		{"what streams and takes it back", Trust{Streams: true}, "a+ a- b+", none, "a:passed", "b:passed"},
		{"the exit code speaks", Trust{ExitSpeaks: true}, "", none, "", "a:passed b:passed"},
		{"the exit code does not speak for what failed", Trust{ExitSpeaks: true}, "a-", none, "a:failed", "b:passed"},
		{"nor for the rest once it is another", Trust{ExitSpeaks: true}, "a-", 1, "a:failed", "b:nothing"},
		{"nor if the tool was ended", Trust{ExitSpeaks: true}, "", crash, "", "a:nothing b:nothing"},
	} {
		tally := NewTally([]string{"a", "b"}, c.trust)
		for _, word := range strings.Fields(c.reports) {
			tally.Report(word[:1], map[string]Outcome{"+": Passed, "-": Failed, "~": Skipped}[word[1:]])
		}
		if got := shown(tally.Take()); got != c.early {
			t.Errorf("%s: %q count before the end, want %q", c.name, got, c.early)
		}
		if got := shown(tally.End(c.code != crash, c.code)); got != c.end {
			t.Errorf("%s: %q at the end, want %q", c.name, got, c.end)
		}
	}
}

func TestLabelsThatNobodyAskedForAndContradictionsAreNamed(t *testing.T) {
	tally := NewTally([]string{"a", "b"}, Trust{Streams: true})
	for range 2 {
		tally.Report("c", Passed)
		tally.Report("a", Passed)
		tally.Report("a", Failed)
	}
	strange, contradicted := tally.Odd()
	if !slices.Equal(strange, []string{"c"}) || !slices.Equal(contradicted, []string{"a"}) {
		t.Errorf("strange %v, contradicted %v", strange, contradicted)
	}
}

// TestEachTargetHasOneResultWhateverATelltaleSays: random reports. Each label has exactly one result, green only if it was said to
// have passed and nothing else before.
func TestEachTargetHasOneResultWhateverATelltaleSays(t *testing.T) {
	r := seedtest.Random(t)
	for range 20_000 {
		labels := []string{"a", "b", "c"}[:1+r.IntN(3)]
		tally := NewTally(labels, Trust{Streams: r.IntN(2) == 0})
		said := map[string][]Outcome{}
		results := map[string]Outcome{}
		take := func(list []Result) {
			for _, one := range list {
				if _, had := results[one.Label]; had || !slices.Contains(labels, one.Label) {
					t.Fatalf("%v of %v, said %v", one, labels, said)
				}
				results[one.Label] = one.Outcome
				if one.Outcome == Passed && (len(said[one.Label]) == 0 || slices.ContainsFunc(said[one.Label], func(o Outcome) bool { return o != Passed })) {
					t.Fatalf("%v has passed, said %v", one.Label, said)
				}
			}
		}
		for range r.IntN(6) {
			label, o := []string{"a", "b", "c", "d"}[r.IntN(4)], Outcome(1+r.IntN(3))
			said[label] = append(said[label], o)
			tally.Report(label, o)
			take(tally.Take())
		}
		exited, code := r.IntN(3) > 0, r.IntN(2)
		take(tally.End(exited, code))
		if len(results) != len(labels) {
			t.Fatalf("results %v of %v", results, labels)
		}
	}
}

const goOutput = `{"ImportPath":"x/a","Action":"build-output","Output":"# x/a\n"}
{"ImportPath":"x/a","Action":"build-output","Output":"a/a.go:2:23: cannot use\n"}
{"ImportPath":"x/a","Action":"build-fail"}
{"Action":"start","Package":"x/a"}
{"Action":"output","Package":"x/a","Output":"FAIL\tx/a [build failed]\n"}
{"Action":"fail","Package":"x/a","Elapsed":0,"FailedBuild":"x/a"}
{"Action":"fail","Package":"x/b","Elapsed":0,"FailedBuild":"x/a"}
go: a line of its own
{"Action":"run","Package":"x/c","Test":"TestC"}
{"Action":"output","Package":"x/c","Test":"TestC","Output":"{\"Action\":\"pass\",\"Package\":\"x/e\"}\n"}
{"Action":"pass","Package":"x/c","Test":"TestC","Elapsed":0}
{"Action":"pass","Package":"x/d","Test":"TestD","Elapsed":0}
{"Action":"pass","Package":"x/c","Elapsed":0.02}
{"Action":"skip","Package":"x/f","Elapsed":0}
{"Action":"pass","Package":"x/d"
`

func TestAGoPackageHasPassedIfTheGoCommandSaysSo(t *testing.T) {
	tally := NewTally([]string{"x/a", "x/b", "x/c", "x/d", "x/e", "x/f"}, Trust{Streams: true})
	out := map[string]string{}
	w := GoTests(tally, func(label string, text []byte) { out[label] += string(text) })
	// However it is cut up.
	reader := iotest.OneByteReader(strings.NewReader(goOutput))
	for buffer := make([]byte, 7); ; {
		n, err := reader.Read(buffer)
		if _, werr := w.Write(buffer[:n]); werr != nil {
			t.Fatal(werr)
		}
		if err != nil {
			break
		}
	}
	if got, want := shown(tally.Take()), "x/a:failed x/b:failed x/c:passed x/f:passed"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := shown(tally.End(true, 1)), "x/d:nothing x/e:nothing"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if !strings.Contains(out["x/b"], "a/a.go:2:23: cannot use") || !strings.Contains(out[""], "go: a line of its own\n") || out["x/e"] != "" {
		t.Errorf("output %q", out)
	}
}

func TestAGoBuildNamesWhatFailed(t *testing.T) {
	tally := NewTally([]string{"x/a", "x/b"}, Trust{ExitSpeaks: true})
	w := GoBuilds(tally, func(string, []byte) {})
	_, _ = w.Write([]byte(goOutput))
	if got := shown(tally.Take()); got != "x/a:failed x/b:failed" {
		t.Errorf("%q", got)
	}
}

func TestALineThatIsTooLongIsNoReport(t *testing.T) {
	var got []string
	l := &lines{each: func(line []byte) { got = append(got, string(line)) }}
	_, _ = l.Write([]byte(strings.Repeat("x", maxLine)))
	_, _ = l.Write([]byte("y\nnext\nrest"))
	if !slices.Equal(got, []string{"next"}) {
		t.Errorf("%.80q", got)
	}
}

// TestPackagesThatGoRefusesOnlyTogetherHaveNoResult: go builds no two packages at once whose import paths differ in the case of
// letters alone. Each is run by itself then, and passes.
func TestPackagesThatGoRefusesOnlyTogetherHaveNoResult(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module example.com/shop\n\ngo 1.21\n",
		"Util/u.go": "package util\n", "Util/u_test.go": "package util\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n",
		"util/u.go": "package util\n", "util/u_test.go": "package util\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n",
		"broken/b.go": "package broken\n\nvar x int = \"\"\n", "broken/b_test.go": "package broken\n",
	} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "UTIL")); err == nil {
		t.Skip("this file system does not tell Util from util")
	}
	labels := []string{"example.com/shop/Util", "example.com/shop/broken", "example.com/shop/util"}
	for verb, reader := range map[string]func(*Tally, Output) io.Writer{"test": GoTests, "build": GoBuilds} {
		trust := Trust{Streams: verb == "test", ExitSpeaks: verb == "build"}
		tally := NewTally(labels, trust)
		c := exec.Command("go", verb, "-json", "./Util", "./broken", "./util")
		c.Dir, c.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
		c.Stdout = reader(tally, func(string, []byte) {})
		if err := c.Run(); err == nil && verb == "build" {
			t.Fatal("go builds them at once")
		}
		blamed := map[string]Outcome{}
		for _, r := range append(tally.Take(), tally.End(true, c.ProcessState.ExitCode())...) {
			blamed[r.Label] = r.Outcome
		}
		if blamed["example.com/shop/util"] == Failed || blamed["example.com/shop/Util"] == Failed {
			t.Errorf("go %s: %v", verb, blamed)
		}
		if verb == "test" && (blamed["example.com/shop/broken"] != Failed || blamed["example.com/shop/util"] != Nothing) {
			t.Errorf("go test: %v", blamed)
		}
	}
}
