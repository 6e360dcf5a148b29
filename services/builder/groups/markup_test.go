package groups

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
)

// A test of a change can write the report. Of one of 64 MiB, the longest that is read, the elements took 1.6 GB of the builder's memory,
// and the attributes 2.4 GB, which is outside of the bounds of the step.
func TestReportsOfManyElementsAndAttributesCostLittle(t *testing.T) {
	for name, report := range map[string]string{
		"elements":   strings.Repeat("<testsuite>", 4<<20/11),
		"attributes": "<testsuite " + strings.Repeat(`a="" `, 4<<20/5) + "/>",
		"xmlns":      strings.Repeat("<testsuite"+strings.Repeat(` xmlns:x=""`, mostTag/11-1)+">", 64),
		"values":     `<testsuite a=">'" ` + strings.Repeat(`a='>"' `, 4<<20/7) + "/>",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		j := NewJUnit(NewTally([]string{"a"}, Trust{}), func(string, []byte) {})
		j.Read(strings.NewReader(report))
		runtime.ReadMemStats(&after)
		if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 100 {
			t.Errorf("%s: a report of %d MiB took %d MiB", name, len(report)>>20, got)
		}
		if !j.broken {
			t.Errorf("%s: the report is believed", name)
		}
	}
}

func TestWhatIsNoTagMayBeLong(t *testing.T) {
	long := strings.Repeat("a < b, <c don't say \" -- ]] ? ", 2*mostTag/30)
	safe := strings.NewReplacer("<", "&lt;", "--", "-").Replace(long)
	for name, c := range map[string]struct{ text, want string }{
		"data":      {"<a><![CDATA[" + long + "]]></a>", ""},
		"a comment": {"<a><!--" + strings.ReplaceAll(long, "--", "-") + "--></a>", ""},
		"text":      {`<a b=">" c='"'>` + safe + "</a>", ""},
		"a program": {"<?x " + long + "?><a/>", ""},
		"a tag":     {"<a " + strings.Repeat("b ", mostTag) + "/>", "too long"},
		"a value":   {"<a b='" + safe + "'/>", "too long"},
		"after all": {"<?x ?><!DOCTYPE x><!-- - -> --><a><![CDATA[ ]> ]]><b c=\"" + strings.Repeat("'>", mostTag) + "\"/></a>", "too long"},
	} {
		read, err := io.ReadAll(newMarkup(strings.NewReader(c.text)))
		if got := errors.Is(err, errTag); got != (c.want != "") || !got && string(read) != c.text {
			t.Errorf("%s: error %v after %d of %d bytes", name, err, len(read), len(c.text))
		}
	}
}

// What a test reports of targets that there are not is in the builder's log.
func TestLabelsThatNobodyAskedForAreCut(t *testing.T) {
	tally := NewTally([]string{"a"}, Trust{})
	j := NewJUnit(tally, func(string, []byte) {})
	j.Read(strings.NewReader(`<testsuite><properties><property name="landfall.target" value="` + strings.Repeat("x", 500_000) + `"/></properties></testsuite>`))
	if strange, _ := tally.Odd(); len(strange) != 1 || len(strange[0]) != maxStrangeBytes {
		t.Errorf("%d labels are kept", len(strange))
	}
}
