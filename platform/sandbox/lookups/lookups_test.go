package lookups

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"landfall.build/events/seedtest"
)

// TestWhatAFolderLacks holds Of to what it says of every path of random trees, asked one by one.
func TestWhatAFolderLacks(t *testing.T) {
	r := seedtest.Random(t)
	pick := func() string {
		parts := make([]string, 1+r.IntN(4))
		for i := range parts {
			parts[i] = []string{"a", "a-b", "b", "manifest", "__init__.py"}[r.IntN(5)]
		}
		return strings.Join(parts, "/")
	}
	kinds := map[string]int{}
	for range 3000 {
		files := map[string]bool{}
		for range r.IntN(12) {
			name := pick()
			if !slices.ContainsFunc(slices.Collect(maps.Keys(files)), func(other string) bool {
				return strings.HasPrefix(name, other+"/") || strings.HasPrefix(other, name+"/")
			}) {
				files[name] = true
			}
		}
		held, shown := map[string]bool{}, map[string]bool{}
		for name := range files {
			if r.IntN(3) == 0 {
				held[name] = r.IntN(3) > 0
			}
			if folder := path.Dir(name); r.IntN(3) == 0 {
				shown[strings.TrimPrefix(folder, ".")] = r.IntN(3) == 0
			}
		}
		before, all := maps.Clone(held), slices.Sorted(maps.Keys(files))
		always := func(name string) bool { return name == "manifest" }
		got := Of(all, held, func(folder string) (names, alone bool) { alone, names = shown[folder]; return names, alone }, always)

		var isThere func(folder string) bool
		isThere = func(folder string) bool {
			above, isShown := path.Dir(folder), false
			_, isShown = shown[strings.TrimPrefix(above, ".")]
			return folder == "." || isShown && shown[folder] && isThere(above) || slices.ContainsFunc(slices.Collect(maps.Keys(before)), func(name string) bool { return strings.HasPrefix(name, folder+"/") })
		}
		absent, empty, hollow, listed := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
		for name := range files {
			if whole, in := before[name]; in {
				empty[name] = !whole
				continue
			}
			entry := name
			for !isThere(path.Dir(entry)) {
				entry = path.Dir(entry)
			}
			folder := path.Dir(entry)
			_, names := shown[strings.TrimPrefix(folder, ".")]
			listed[folder] = listed[folder] || names && !always(path.Base(entry))
			switch {
			case !names && !always(path.Base(entry)):
				absent[entry] = true
			case entry == name:
				empty[entry] = true
			default:
				hollow[entry] = true
				if name == entry+"/__init__.py" && names {
					empty[name] = true
				}
			}
		}
		sorted := func(in map[string]bool) []string {
			return slices.Sorted(func(yield func(string) bool) {
				for name, is := range in {
					if is && !yield(name) {
						return
					}
				}
			})
		}
		want := Missing{Absent: sorted(absent), Empty: sorted(empty), Hollow: sorted(hollow), Shown: sorted(listed)}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("of %q, held %v, shown %v:\n got %+v\nwant %+v", all, before, shown, got, want)
		}
		for name, whole := range held {
			if was, in := before[name]; in && was != whole || !in && whole {
				t.Fatalf("%s is held whole", name)
			}
		}
		for _, folder := range got.Hollow {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(held)), func(name string) bool { return strings.HasPrefix(name, folder+"/") }) {
				t.Fatalf("nothing holds the place of %s", folder)
			}
		}
		for kind, list := range map[string][]string{"absent": got.Absent, "empty": got.Empty, "hollow": got.Hollow, "shown": got.Shown} {
			kinds[kind] += len(list)
		}
	}
	if len(kinds) != 4 || slices.Contains(slices.Collect(maps.Values(kinds)), 0) {
		t.Errorf("the trees show too little: %v", kinds)
	}
}

// BenchmarkOf measures what a workspace lacks of 500,000 files, of which it holds those of one package of a thousand.
func BenchmarkOf(b *testing.B) {
	var all []string
	for p := range 1000 {
		for f := range 500 {
			all = append(all, fmt.Sprintf("packages/p%04d/src/part%02d/file%03d.py", p, f/20, f))
		}
	}
	slices.Sort(all)
	for b.Loop() {
		held := map[string]bool{}
		for _, name := range all[:500] {
			held[name] = true
		}
		if missing := Of(all, held, func(string) (names, alone bool) { return true, false }, func(string) bool { return false }); len(missing.Hollow) != 999 {
			b.Fatalf("%d folders are hollow", len(missing.Hollow))
		}
	}
}
