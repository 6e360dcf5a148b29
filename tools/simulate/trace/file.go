package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"unicode/utf8"
)

// Bounds of a file: a longer line, or a longer history, is not a trace of a queue.
const (
	maxLine    = 1 << 20
	maxHorizon = 100_000
)

// maxSeconds bounds the times of every trace, so that none overflows in microseconds; minSeconds the durations of a file's builds,
// so that none is rounded to nothing.
const (
	maxSeconds = 1e9
	minSeconds = 1e-6
)

// line is a change in a file.
type line struct {
	ID        *string  `json:"id"`
	Arrival   *float64 `json:"arrival_s"`
	Duration  *float64 `json:"duration_s"`
	Green     *bool    `json:"green"`
	Meets     []string `json:"meets"`
	Breaks    []string `json:"breaks"`
	MeetsLast *int     `json:"meets_last"`
	// Steps has how long the step of each target takes, in seconds; Fails is the one that fails.
	Steps map[string]float64 `json:"steps"`
	Fails *string            `json:"fails"`
}

// BadLine is an error in a line of a file. Nothing after it was read.
type BadLine struct {
	Line int
	Err  error
}

func (e BadLine) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

func (e BadLine) Unwrap() error { return e.Err }

// File is a trace in JSON lines, one change each, by arrival:
//
//	{"id":"a","arrival_s":0,"duration_s":1800,"green":true}
//	{"id":"b","arrival_s":7.5,"duration_s":600,"green":true,"meets":["a"],"breaks":["a"]}
//
// meets are the earlier changes with which it is in potential conflict, breaks those of them with which it
// truly conflicts; both may only name one of the last 100,000 changes, so that what is kept is bounded.
// Instead of meets, meets_last is the number of changes right before it that it meets.
//
// With steps, {"//a":2.5,"//b":10}, a file in steps has the targets of each change, and how long the step of each takes; then two meet in
// the targets that both have. fails is the one that fails, where a change is not green.
type File struct {
	r     *bufio.Reader
	rates Rates
	line  int
	last  float64
	// numbers are those of the last changes, by id; recent are their ids, in a ring.
	numbers map[string]int
	recent  []string
	meets   map[int]met // by number, of the last changes
	next    int
	// targets has the numbers of the targets, nil if the file is not read in steps; steps those of the last changes that may be named.
	targets map[string]int
	steps   map[int]*Change
}

// met are the earlier changes that one meets. Those that meets_last names are not listed: each of 100,000 changes that are
// kept may meet as many.
type met struct {
	named []int // ascending
	// [from, to) are met as well.
	from, to int
}

func (m met) has(number int) bool {
	_, named := slices.BinarySearch(m.named, number)
	return named || m.from <= number && number < m.to
}

func (m met) len() int { return len(m.named) + m.to - m.from }

// NewFile reads a trace. rates are those of the whole, from Survey.
func NewFile(r io.Reader, rates Rates) *File {
	return &File{r: bufio.NewReaderSize(r, 1<<16), rates: rates, numbers: map[string]int{}, meets: map[int]met{}}
}

// InSteps has the targets of each change built for themselves. Every line then has steps.
func (f *File) InSteps() *File {
	f.targets, f.steps = map[string]int{}, map[int]*Change{}
	return f
}

// Rates are those that the trace was opened with.
func (f *File) Rates() Rates { return f.rates }

// Meet reports whether behind named ahead among those that it meets.
func (f *File) Meet(ahead, behind *Change) bool {
	if f.targets != nil {
		return Share(ahead, behind)
	}
	return f.meets[behind.Number].has(ahead.Number)
}

// Next reads a line. Its errors are a BadLine, io.EOF at the end, or the reader's own.
func (f *File) Next() (*Change, error) {
	for {
		raw, err := f.read()
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(raw)) == 0 {
			continue
		}
		c, err := f.parse(raw)
		if err != nil {
			return nil, BadLine{f.line, err}
		}
		return c, nil
	}
}

// read gives the next line without its end.
func (f *File) read() ([]byte, error) {
	var raw []byte
	for {
		part, more, err := f.r.ReadLine()
		if err != nil {
			return nil, err
		}
		if raw == nil {
			f.line++
		}
		if raw = append(raw, part...); len(raw) > maxLine {
			return nil, BadLine{f.line, fmt.Errorf("it is longer than %d bytes", maxLine)}
		}
		if !more {
			return raw, nil
		}
	}
}

func (f *File) parse(raw []byte) (*Change, error) {
	if f.line == 1 {
		raw = bytes.TrimPrefix(raw, []byte("\ufeff")) // some editors write a byte order mark
	}
	if !utf8.Valid(raw) {
		return nil, errors.New("it is not UTF-8")
	}
	var l line
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return nil, fmt.Errorf("it is no change: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) { // More would take a stray bracket for the end
		return nil, errors.New("there is more than one value on it")
	}
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for name, missing := range map[string]bool{"id": l.ID == nil || *l.ID == "", "arrival_s": l.Arrival == nil, "duration_s": l.Duration == nil && len(l.Steps) == 0, "green": l.Green == nil} {
		if missing {
			bad("%s is missing", name)
		}
	}
	if l.Meets != nil && l.MeetsLast != nil {
		bad("it has both meets and meets_last")
	}
	if len(errs) > 0 {
		slices.SortFunc(errs, func(a, b error) int { return bytes.Compare([]byte(a.Error()), []byte(b.Error())) })
		return nil, errors.Join(errs...)
	}
	if _, twice := f.numbers[*l.ID]; twice {
		bad("there was a change %q before", *l.ID)
	}
	if !(*l.Arrival >= 0 && *l.Arrival <= maxSeconds) || *l.Arrival < f.last {
		bad("it arrives at %v s, which is before the line before it, negative or beyond %g", *l.Arrival, maxSeconds)
	}
	seconds := l.seconds(bad)
	if !(seconds >= minSeconds && seconds <= maxSeconds) {
		bad("its build takes %v s; that must be positive, at least %g and at most %g", seconds, minSeconds, maxSeconds)
	}
	c := &Change{Number: f.next, ID: *l.ID, Arrival: int64(math.Round(*l.Arrival * 1e6)), Duration: int64(math.Round(seconds * 1e6)), Green: *l.Green}
	meets := met{named: f.earlier("meets", l.Meets, *l.ID, bad)}
	c.Breaks = f.earlier("breaks", l.Breaks, *l.ID, bad)
	if n := l.MeetsLast; n != nil {
		if *n < 0 || *n > len(f.recent) {
			bad("it meets the last %d changes; there are %d before it, at most %d are kept", *n, f.next, maxHorizon)
		} else {
			meets.from, meets.to = f.next-*n, f.next
		}
	}
	if f.targets != nil {
		f.inSteps(c, &l, bad)
	}
	for _, name := range l.Breaks {
		if f.targets != nil {
			break
		}
		if n, known := f.numbers[name]; known && !meets.has(n) {
			bad("it breaks with a change that it does not meet, %q", name)
			break
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	f.keep(c, meets)
	f.last = *l.Arrival
	return c, nil
}

// earlier gives the numbers of named changes, ascending.
func (f *File) earlier(field string, names []string, id string, bad func(string, ...any)) (numbers []int) {
	for _, name := range names {
		n, known := f.numbers[name]
		switch {
		case name == id:
			bad("%s names the change itself", field)
		case !known:
			bad("%s names %q, which is none of the changes before it (of which the last %d are kept)", field, name, maxHorizon)
		default:
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// keep remembers a change, and forgets the one that falls out of what may be named.
func (f *File) keep(c *Change, meets met) {
	if len(f.recent) < maxHorizon {
		f.recent = append(f.recent, c.ID)
	} else {
		slot := &f.recent[c.Number%maxHorizon]
		delete(f.numbers, *slot)
		delete(f.meets, c.Number-maxHorizon)
		*slot = c.ID
	}
	f.numbers[c.ID] = c.Number
	if meets.len() > 0 {
		f.meets[c.Number] = meets
	}
	if f.steps != nil {
		f.steps[c.Number] = c
		delete(f.steps, c.Number-maxHorizon)
	}
	f.next++
}

// Survey reads a file once, and returns its errors, its number of changes, and the rates that a forecast may know.
func Survey(r io.Reader) (rates Rates, changes int, err error) { return NewFile(r, Rates{}).survey() }

// SurveyInSteps is Survey for a file that is read in steps.
func SurveyInSteps(r io.Reader) (rates Rates, changes int, err error) {
	return NewFile(r, Rates{}).InSteps().survey()
}

// pairedWith is with how many changes before it one is compared, to count the pairs that meet.
const pairedWith = 200

func (f *File) survey() (rates Rates, changes int, err error) {
	arrivals := map[int]int64{}
	var green, pairs, broken int
	var sum, squares float64
	for {
		c, err := f.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Rates{}, 0, err
		}
		arrivals[c.Number] = c.Arrival
		delete(arrivals, c.Number-maxHorizon)
		changes++
		if c.Green {
			green++
		}
		broken += len(c.Breaks)
		if f.targets == nil {
			pairs += f.meets[c.Number].len()
		}
		for n := max(0, c.Number-pairedWith); n < c.Number && f.targets != nil; n++ {
			if Share(f.steps[n], c) {
				pairs++
			}
		}
		for _, b := range c.Breaks {
			rates.Near = max(rates.Near, c.Arrival-arrivals[b])
		}
		sum, squares = sum+float64(c.Duration), squares+float64(c.Duration)*float64(c.Duration)
	}
	if changes == 0 {
		return Rates{}, 0, errors.New("there is no change in it")
	}
	n := float64(changes)
	rates.Green, rates.Conflict = float64(green)/n, float64(broken)/float64(max(1, pairs))
	rates.Mean = sum / n
	rates.Std = math.Sqrt(max(0, squares/n-rates.Mean*rates.Mean))
	return rates, changes, nil
}
