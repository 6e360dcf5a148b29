package table

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const builds = `ended,project,lines,tests,passed,seconds
2023-01-01T00:00:03Z,kafka,10,NA,true,100.5
2023-01-01T00:00:01Z,hive,,3,false,20
2023-01-01T00:00:02Z,kafka,-4.5e2,4,yes,30
2023-01-01T00:00:02Z,"a, b",7,?,no,40
`

func read(t testing.TB, text string, o Options) *Table {
	t.Helper()
	table, err := Read(strings.NewReader(text), o)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestColumnsGetTheirKindFromTheirCells(t *testing.T) {
	table := read(t, builds, Options{})
	want := []Kind{Time, Category, Number, Number, Truth, Number}
	for k, c := range table.Columns {
		if c.Kind != want[k] {
			t.Errorf("%s is a %v, want %v", c.Name, c.Kind, want[k])
		}
	}
	if v := table.Columns[2].Numbers; v[0] != 10 || !math.IsNaN(v[1]) || v[2] != -450 {
		t.Errorf("lines: %v", v)
	}
	if v := table.Columns[1].Texts; !slices.Equal(v, []string{"kafka", "hive", "kafka", "a, b"}) {
		t.Errorf("projects: %q", v)
	}
	outcomes, err := table.Outcomes("passed")
	if err != nil || !slices.Equal(outcomes, []bool{true, false, true, false}) {
		t.Errorf("outcomes %v, %v", outcomes, err)
	}
	older, newer, err := table.SplitByTime("ended", 0.5)
	if err != nil || !slices.Equal(older, []int{1, 2, 3}) || !slices.Equal(newer, []int{0}) {
		t.Errorf("rows of equal time are parted: %v and %v, %v", older, newer, err)
	}
	if got := table.Without("ended", "tests").Pick([]int{2, 0}); got.Rows != 2 || got.Columns[3].Numbers[1] != 100.5 {
		t.Errorf("picked %+v", got)
	}
	project, err := Read(strings.NewReader(builds), Options{Kinds: map[string]Kind{"lines": Category}})
	if err != nil || project.Columns[2].Texts[2] != "-4.5e2" {
		t.Errorf("lines as a category: %v, %v", project, err)
	}
}

func TestBadFilesAreRefusedByName(t *testing.T) {
	wide := strings.Repeat("x,", 99_999) + "x\n"
	mostly := "n\n" + strings.Repeat("1\n", 20) + "twelve\n"
	for name, c := range map[string]struct {
		text string
		o    Options
		want error
		says string
	}{
		"nothing":           {"", Options{}, ErrEmpty, "no header"},
		"header only":       {"a,b\n", Options{}, ErrEmpty, "2 columns"},
		"100,000 columns":   {wide, Options{}, ErrTooManyColumns, "100000, at most 4096"},
		"twice":             {"a,b,a\n1,2,3\n", Options{}, ErrHeader, `columns 1 and 3 are both named "a"`},
		"nameless":          {"a,,b\n1,2,3\n", Options{}, ErrHeader, "column 2"},
		"ragged":            {"a,b\n1,2\n3\n", Options{}, ErrSyntax, "line 3"},
		"quotes":            {"a,b\n1,\"2\n", Options{}, ErrSyntax, "quote"},
		"text in numbers":   {mostly, Options{}, ErrText, `row 21 of "n" is "twelve", not a number; 20 of 21`},
		"declared number":   {"a\nx\n", Options{Kinds: map[string]Kind{"a": Number}}, ErrText, `row 1 of "a" is "x"`},
		"infinite":          {"a\n1e999\n", Options{Kinds: map[string]Kind{"a": Number}}, ErrText, "1e999"},
		"declared unknown":  {"a\n1\n", Options{Kinds: map[string]Kind{"b": Number}}, ErrColumn, `"b"`},
		"too many rows":     {"a\n1\n2\n3\n", Options{Rows: 2}, ErrTooLarge, "2 rows"},
		"too many bytes":    {"a\n" + strings.Repeat("1\n", 500), Options{Bytes: 100}, ErrTooLarge, "bytes"},
		"a cell of a novel": {"a\n" + strings.Repeat("x", 70_000) + "\n", Options{}, ErrTooLarge, "70000"},
	} {
		_, err := Read(strings.NewReader(c.text), c.o)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v saying %q", name, err, c.want, c.says)
		}
	}
	for range 20 { // whatever the order of a map
		_, err := Read(strings.NewReader("a\n1\n"), Options{Kinds: map[string]Kind{"d": Number, "c": Number, "b": Number}})
		if err == nil || !strings.Contains(err.Error(), `"b"`) {
			t.Fatalf("of three columns that are not there: %v", err)
		}
	}
	table := read(t, builds, Options{})
	for name, c := range map[string]struct {
		err  func() error
		want error
		says string
	}{
		"no such target":  {func() error { _, err := table.Target("time"); return err }, ErrColumn, "ended, project"},
		"text as target":  {func() error { _, err := table.Target("project"); return err }, ErrColumn, `"kafka"`},
		"missing target":  {func() error { _, err := table.Target("lines"); return err }, ErrMissing, "row 2"},
		"numbers as bool": {func() error { _, err := table.Outcomes("seconds"); return err }, ErrColumn, "100.5"},
	} {
		if err := c.err(); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v saying %q", name, err, c.want, c.says)
		}
	}
}

// many has a category of 40 values, each in 5 rows.
func many(t testing.TB) (*Table, []float64) {
	t.Helper()
	var text strings.Builder
	text.WriteString("author,lang,constant,lines\n")
	var target []float64
	for i := range 200 {
		fmt.Fprintf(&text, "author%d,%s,7,%d\n", i%40, []string{"go", "java", ""}[i%3], i)
		target = append(target, float64(i%40)+float64(i%7))
	}
	return read(t, text.String(), Options{}), target
}

func TestCategoriesBecomeColumnsOrMeans(t *testing.T) {
	table, target := many(t)
	e, rows, dropped, err := FitEncoder(table, target, Encoding{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"author", "lang=go", "lang=java", "lines"}; !slices.Equal(e.Features(), want) {
		t.Errorf("features %q, want %q", e.Features(), want)
	}
	if !slices.Equal(dropped, []string{"constant"}) {
		t.Errorf("dropped %q", dropped)
	}
	overall, own := 0.0, 0.0
	for i, y := range target {
		overall += y / 200
		if i%40 == 3 {
			own += y
		}
	}
	got, err := e.EncodeRow(nil, []Cell{{Text: "author3"}, {Text: "go"}, {Number: 9}})
	if want := []float64{(own + 5*overall) / 10, 1, 0, 9}; err != nil || math.Abs(got[0]-want[0]) > 1e-9 || !slices.Equal(got[1:], want[1:]) {
		t.Errorf("encoded %v (%v), want %v", got, err, want)
	}
	unseen, err := e.EncodeRow(nil, []Cell{{Text: "nobody"}, {}, {Number: math.NaN()}})
	if err != nil || math.Abs(unseen[0]-overall) > 1e-9 || !math.IsNaN(unseen[1]) || !math.IsNaN(unseen[2]) || !math.IsNaN(unseen[3]) {
		t.Errorf("unseen and missing: %v, %v", unseen, err)
	}
	if first := rows[3][0]; math.Abs(first-overall) > 1e-9 {
		t.Errorf("the first row of an author has %g, of whom nothing was known before: want %g", first, overall)
	}
	if third, want := rows[83][0], (target[3]+target[43]+5*overall)/7; math.Abs(third-want) > 1e-9 {
		t.Errorf("the third row of an author has %g, want %g", third, want)
	}
	if _, err := e.Encode(table.Without("lines")); !errors.Is(err, ErrColumn) {
		t.Errorf("a table without lines: %v", err)
	}
	if _, err := e.EncodeRow(nil, nil); !errors.Is(err, ErrColumn) {
		t.Errorf("no cells: %v", err)
	}
	if _, _, _, err := FitEncoder(table.Without("author", "lang", "lines"), target, Encoding{}); !errors.Is(err, ErrConstant) {
		t.Errorf("constant columns only: %v", err)
	}
}

func TestTrainingRowsDoNotSeeTheirOwnTargetNorLaterOnes(t *testing.T) {
	table, target := many(t)
	_, before, _, err := FitEncoder(table, target, Encoding{})
	if err != nil {
		t.Fatal(err)
	}
	// Swapping targets keeps the overall mean.
	target[150], target[120] = target[120]+1000, target[150]-1000
	_, after, _, err := FitEncoder(table, target, Encoding{})
	if err != nil {
		t.Fatal(err)
	}
	changed := false
	for i := range before {
		same := math.Abs(before[i][0]-after[i][0]) < 1e-9
		if i <= 120 && !same {
			t.Fatalf("row %d depends on the target of a later row", i)
		}
		changed = changed || !same
	}
	if !changed {
		t.Error("no row depends on any target")
	}
}

func TestAnEncoderComesBackEqualAndDamageIsRefused(t *testing.T) {
	table, target := many(t)
	e, _, _, err := FitEncoder(table, target, Encoding{})
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := e.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	back, err := UnmarshalEncoder(sealed)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := e.Encode(table)
	got, err := back.Encode(table)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) || !reflect.DeepEqual(back.Features(), e.Features()) {
		t.Errorf("the encoder read back encodes otherwise (%v)", err)
	}
	for k := range sealed {
		damaged := slices.Clone(sealed)
		damaged[k] ^= 2
		if _, err := UnmarshalEncoder(damaged); !errors.Is(err, ErrNotAnEncoder) {
			t.Fatalf("byte %d changed: %v", k, err)
		}
	}
	e.inputs[0].encoded = e.inputs[0].encoded[1:]
	sealed, err = e.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := UnmarshalEncoder(sealed); err == nil || !strings.Contains(err.Error(), "40 levels and 39 encoded") {
		t.Errorf("absurd encoder: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(builds)
	f.Add("a,b\n1,x\n2,\n")
	f.Add("a\n\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := Read(strings.NewReader(text), Options{Columns: 50, Rows: 1000, Bytes: 1 << 16})
		if err != nil {
			return
		}
		for _, c := range table.Columns {
			if len(c.Numbers)+len(c.Texts) != table.Rows || table.Rows == 0 {
				t.Fatalf("%q has %d and %d cells in %d rows", c.Name, len(c.Numbers), len(c.Texts), table.Rows)
			}
			for _, v := range c.Numbers {
				if math.IsInf(v, 0) {
					t.Fatalf("%q holds %g", c.Name, v)
				}
			}
		}
		e, rows, _, err := FitEncoder(table, make([]float64, table.Rows), Encoding{OneHot: 2})
		if err != nil {
			return
		}
		for _, row := range rows {
			if len(row) != len(e.Features()) {
				t.Fatalf("%d values for %d features", len(row), len(e.Features()))
			}
		}
	})
}

func ExampleRead() {
	t, err := Read(strings.NewReader(builds), Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	seconds, err := t.Target("seconds")
	if err != nil {
		fmt.Println(err)
		return
	}
	e, rows, _, err := FitEncoder(t.Without("ended", "seconds"), seconds, Encoding{})
	fmt.Println(e.Features(), err)
	fmt.Println(rows[0])
	// Output:
	// [project=a, b project=hive project=kafka lines tests passed] <nil>
	// [0 0 1 10 NaN 1]
}
