package groups

import (
	"runtime"
	"slices"
	"strings"
	"testing"
)

// testcases of a suite, for short.
const (
	passes  = `<testcase classname="c" name="p" time="0.1"/>`
	fails   = `<testcase classname="c" name="f"><failure message="no">at line 3</failure><system-out>x</system-out></testcase>`
	skips   = `<testcase name="s"><skipped/></testcase>`
	retried = `<testcase name="r"><flakyFailure message="once"/></testcase>`
)

func TestASuiteSaysWhatCameOutOfItsTarget(t *testing.T) {
	named := func(name, cases string) string { return `<testsuite name="` + name + `">` + cases + `</testsuite>` }
	for name, c := range map[string]struct {
		files []string
		code  int
		want  string
	}{
		"one each, as surefire writes":     {[]string{`<?xml version="1.0" encoding="UTF-8"?>` + named("//a:t", passes), named("//b:t", fails)}, 1, "//a:t:passed //b:t:failed"},
		"in one, as pytest and jest write": {[]string{`<testsuites name="all" failures="1">` + named("//a:t", passes+skips) + named("//b:t", passes+fails) + `</testsuites>`}, 1, "//a:t:passed //b:t:failed"},
		"by a property": {[]string{named("pytest", `<properties><property name="landfall.target" value="//a:t"/></properties>`+passes),
			named("pytest", passes+`<properties><property name="landfall.target" value="//b:t"/></properties>`)}, 0, "//a:t:passed //b:t:passed"},
		"a property of a test":                    {[]string{named("//a:t", `<testcase name="x"><properties><property name="landfall.target" value="//b:t"/></properties></testcase>`)}, 0, "//a:t:passed //b:t:nothing"},
		"suites of classes":                       {[]string{named("//a:t", named("com.x.A", passes)+named("com.x.B", fails)), named("//b:t", named("com.x.C", passes))}, 1, "//a:t:failed //b:t:passed"},
		"several files of a target":               {[]string{named("//a:t", passes), named("//a:t", fails), named("//b:t", skips), named("//b:t", passes)}, 1, "//a:t:failed //b:t:passed"},
		"an error, and a retry":                   {[]string{named("//a:t", `<testcase name="x"><error/></testcase>`), named("//b:t", retried)}, 1, "//a:t:failed //b:t:passed"},
		"a suite that did not load":               {[]string{`<testsuite name="//a:t" errors="1"></testsuite>`, named("//b:t", passes)}, 1, "//a:t:failed //b:t:passed"},
		"nothing but what is skipped, or nothing": {[]string{named("//a:t", skips), named("//b:t", "")}, 0, "//a:t:nothing //b:t:nothing"},
		"others":                 {[]string{named("a", passes), named("//b:t/", passes), `<testcase name="//a:t"/>`}, 0, "//a:t:nothing //b:t:nothing"},
		"the tool failed":        {[]string{named("//a:t", passes), named("//b:t", passes)}, 1, "//a:t:nothing //b:t:nothing"},
		"a file that is cut":     {[]string{named("//a:t", passes), `<testsuites>` + named("//b:t", passes)}, 0, "//a:t:nothing //b:t:nothing"},
		"what failed in it":      {[]string{named("//a:t", passes), `<testsuites>` + named("//b:t", fails) + `<testsuite name="//a:t"><testca`}, 1, "//a:t:nothing //b:t:failed"},
		"no XML":                 {[]string{named("//a:t", passes), "passed //b:t\n<"}, 0, "//a:t:nothing //b:t:nothing"},
		"an entity of its own":   {[]string{`<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>` + named("//a:t", passes+"&e;")}, 0, "//a:t:nothing //b:t:nothing"},
		"another character set":  {[]string{`<?xml version="1.0" encoding="ISO-8859-1"?>` + named("//a:t", passes), named("//b:t", passes)}, 0, "//a:t:passed //b:t:passed"},
		"an attribute that lies": {[]string{`<testsuite name="//a:t" failures="1" tests="2">` + passes + `</testsuite>`, named("//b:t", passes)}, 1, "//a:t:failed //b:t:passed"},
	} {
		tally := NewTally([]string{"//a:t", "//b:t"}, Trust{})
		j := NewJUnit(tally, func(string, []byte) {})
		for _, file := range c.files {
			j.Read(strings.NewReader(file))
		}
		j.Report()
		results := tally.End(true, c.code)
		slices.SortFunc(results, func(a, b Result) int { return strings.Compare(a.Label, b.Label) })
		if got := shown(results); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestATargetIsShownWhatFailedInItsSuites(t *testing.T) {
	said := map[string]string{}
	tally := NewTally([]string{"//a:t", "//b:t"}, Trust{})
	j := NewJUnit(tally, func(label string, text []byte) { said[label] += string(text) })
	j.Read(strings.NewReader(`<testsuites><testsuite name="other">` + fails + `</testsuite><testsuite name="//a:t"><testsuite name="c">` + fails +
		`</testsuite><testsuite name="//b:t">` + strings.Replace(fails, "at line 3", strings.Repeat("x", 2*mostSaid), 1) + `</testsuite></testsuite></testsuites>`))
	if got := said["//a:t"]; got != "c.f failed: no\nat line 3\n" {
		t.Errorf("of a %q", got)
	}
	if got := said["//b:t"]; len(got) != mostSaid+len("c.f failed: no\n\n") || len(said) != 2 {
		t.Errorf("of b %d bytes; of %d targets", len(got), len(said))
	}
	if strange, _ := tally.Odd(); len(strange) > 0 {
		t.Errorf("suites of other names are strange: %q", strange)
	}
	j.Read(strings.NewReader(`<testsuite name="x"><properties><property name="landfall.target" value="//z:t"/></properties>` + passes + `</testsuite>`))
	if strange, _ := tally.Odd(); !slices.Equal(strange, []string{"//z:t"}) {
		t.Errorf("strange %q", strange)
	}
}

// TestSuitesWithinSuitesCostWhatTheyAreLong reads a report that a change's tests can write, of 64 MiB at most: what failed in the
// innermost of many suites was copied for each of those around it.
func TestSuitesWithinSuitesCostWhatTheyAreLong(t *testing.T) {
	const deep = 3000
	tally, lines := NewTally([]string{"a"}, Trust{}), 0
	report := `<testsuite name="a">` + strings.Repeat("<testsuite>", deep) + strings.Repeat("<testcase><failure/></testcase>", deep) + strings.Repeat("</testsuite>", deep) + `</testsuite>`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	j := NewJUnit(tally, func(string, []byte) { lines++ })
	j.Read(strings.NewReader(report))
	j.Report()
	runtime.ReadMemStats(&after)
	if lines != deep {
		t.Errorf("%d texts of what failed were shown, want %d", lines, deep)
	}
	if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 20 {
		t.Errorf("a report of %d KiB took %d MiB", len(report)>>10, got)
	}
	if list := tally.End(true, 1); len(list) != 1 || list[0].Outcome != Failed {
		t.Errorf("results are %v", list)
	}
}
