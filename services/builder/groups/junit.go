package groups

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// targetProperty is the property of a suite that names its target, where the suite's own name does not.
const targetProperty = "landfall.target"

// mostSaid bounds what is shown of a test that failed, in bytes.
const mostSaid = 64 << 10

// JUnit collects the reports of JUnit's kind that a tool leaves. A testsuite is of the target that its property landfall.target
// names, or else its name; one that names none of the targets is part of the one that it is in. Only suites count that have ended.
type JUnit struct {
	tally  *Tally
	out    Output
	totals map[string]*suite
	broken bool
}

// suite adds up the tests of an element testsuite, or of all those of a target.
type suite struct {
	name, property       string
	ran, failed, skipped int
	// declared is set if its attributes count failures or errors.
	declared bool
	// said is how many texts of failures the reader had when this suite began. Later ones belong to the suite.
	said int
}

// NewJUnit returns a collection without reports.
func NewJUnit(t *Tally, out Output) *JUnit {
	return &JUnit{tally: t, out: out, totals: map[string]*suite{}}
}

// Read takes the report of one file. After one that is no whole XML document, nothing that passed is believed.
func (j *JUnit) Read(r io.Reader) {
	p := &junitReader{JUnit: j}
	var tags []int64 // how long those of the open elements are
	open := int64(0)
	d := xml.NewDecoder(newMarkup(r))
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	for {
		begin := d.InputOffset()
		token, err := d.Token()
		switch t := token.(type) {
		case xml.StartElement:
			tags = append(tags, d.InputOffset()-begin)
			if open += tags[len(tags)-1]; open > mostOpen || len(tags) > mostNested {
				j.broken = true
				return
			}
			p.start(t)
		case xml.EndElement:
			open -= tags[len(tags)-1]
			tags = tags[:len(tags)-1]
			p.end(t.Name.Local)
		case xml.CharData:
			if p.inFault && p.said.Len() < mostSaid {
				p.said.Write(t[:min(len(t), mostSaid-p.said.Len())])
			}
		}
		if err != nil {
			j.broken = j.broken || !errors.Is(err, io.EOF)
			return
		}
	}
}

// Unreadable says that there is a report that cannot be read.
func (j *JUnit) Unreadable() { j.broken = true }

// Report reports what all files together say.
func (j *JUnit) Report() {
	for label, s := range j.totals {
		switch {
		case s.failed > 0:
			j.tally.Report(label, Failed)
		case j.broken:
		case s.ran > 0:
			j.tally.Report(label, Passed)
		case s.skipped > 0:
			j.tally.Report(label, Skipped)
		}
	}
}

// junitReader reads one file.
type junitReader struct {
	*JUnit
	suites []*suite
	// texts are those of the failures in suites, outermost first. A suite without a target leaves its texts to the suite around it.
	texts []string
	// test is the test that is being read, and fault its first failure or error. said is the text of that, which grows while
	// inFault is set.
	test, fault *xml.StartElement
	inFault     bool
	skipped     bool
	said        strings.Builder
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func (p *junitReader) start(e xml.StartElement) {
	switch name := e.Name.Local; {
	case p.test != nil:
		switch {
		case name == "skipped":
			p.skipped = true
		case (name == "failure" || name == "error") && p.fault == nil:
			p.fault, p.inFault = &e, true
		}
	case name == "testsuite" || name == "testsuites":
		count := func(name string) int { n, _ := strconv.Atoi(attribute(e, name)); return n }
		p.suites = append(p.suites, &suite{name: attribute(e, "name"), declared: count("failures")+count("errors") > 0, said: len(p.texts)})
	case name == "testcase":
		p.test = &e
	case name == "property" && len(p.suites) > 0 && attribute(e, "name") == targetProperty:
		p.suites[len(p.suites)-1].property = attribute(e, "value")
	}
}

func (p *junitReader) end(name string) {
	switch {
	case p.fault != nil && name == p.fault.Name.Local:
		p.inFault = false
	case p.test != nil && name == "testcase":
		p.endTest()
	case p.test == nil && (name == "testsuite" || name == "testsuites") && len(p.suites) > 0:
		p.endSuite()
	}
}

func (p *junitReader) endTest() {
	test := strings.Trim(attribute(*p.test, "classname")+"."+attribute(*p.test, "name"), ".")
	if len(p.suites) > 0 {
		s := p.suites[len(p.suites)-1]
		switch {
		case p.fault != nil:
			s.failed++
			p.texts = append(p.texts, strings.TrimSpace(fmt.Sprintf("%s failed: %s\n%s", test, attribute(*p.fault, "message"), p.said.String())))
		case p.skipped:
			s.skipped++
		default:
			s.ran++
		}
	}
	p.test, p.fault, p.skipped = nil, nil, false
	p.said.Reset()
}

func (p *junitReader) endSuite() {
	last := len(p.suites) - 1
	s := p.suites[last]
	p.suites = p.suites[:last]
	if s.declared && s.failed == 0 {
		s.failed = 1 // of no test, such as one that could not be loaded
	}
	label, into := s.name, (*suite)(nil)
	if s.property != "" {
		label = s.property
	}
	asked := p.tally.Asked(label)
	if !asked && s.property == "" && last > 0 {
		into = p.suites[last-1]
	} else {
		texts := p.texts[s.said:]
		p.texts = p.texts[:s.said]
		if !asked {
			if s.property != "" {
				p.tally.Report(label, Nothing) // which nobody asked for
			}
			return
		}
		if into = p.totals[label]; into == nil {
			into = &suite{}
			p.totals[label] = into
		}
		for _, text := range texts {
			p.out(label, []byte(text+"\n"))
		}
	}
	into.ran, into.failed, into.skipped = into.ran+s.ran, into.failed+s.failed, into.skipped+s.skipped
}
