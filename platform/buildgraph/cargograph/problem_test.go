package cargograph

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"landfall.build/platform/buildgraph/gittree"
)

func TestWrongDefinitionsAreNamedWithTheirLines(t *testing.T) {
	for name, c := range map[string]struct {
		edit memoryTree
		want string
	}{
		"a manifest":                    {memoryTree{"crates/app/Cargo.toml": "[package]\nname = \"app\"\nversion = \n"}, "crates/app/Cargo.toml:3: "},
		"no name":                       {memoryTree{"crates/app/Cargo.toml": "[package]\nversion = \"1.0.0\"\n"}, "crates/app/Cargo.toml:1: the package needs a name"},
		"a name that is a flag":         {memoryTree{"crates/app/Cargo.toml": "[package]\n\nname = \"--config=x\"\n"}, "crates/app/Cargo.toml:3: the package needs a name"},
		"neither package nor workspace": {memoryTree{"crates/app/Cargo.toml": "[dependencies]\n"}, "crates/app/Cargo.toml:1: there is neither"},
		"members that are no list":      {memoryTree{"Cargo.toml": "[workspace]\nmembers = \"a\"\n"}, "Cargo.toml:2: members must be an array of strings"},
		"a dependency that is a list":   {memoryTree{"tools/Cargo.toml": "[package]\nname = \"tools\"\n\n[dependencies]\nbase = [1]\n"}, "tools/Cargo.toml:5: dependency base must be"},
		"a lock file":                   {memoryTree{"Cargo.lock": "version = 4\n<<<<<<< ours\n"}, "Cargo.lock:2: "},
		"a configuration":               {memoryTree{".cargo/config.toml": "[build\n"}, ".cargo/config.toml:1: "},
		"a huge manifest":               {memoryTree{"tools/Cargo.toml": "[package]\nname = \"tools\"\n" + strings.Repeat("# x\n", 2<<20)}, "tools/Cargo.toml:1: too large"},
		"a vendored one that is used":   {edited(t, "tools/Cargo.toml", "../crates/base", "../vendor/unused"), "vendor/unused/Cargo.toml:1: "},
	} {
		_, err := newLoader(t, Options{}).Load(t.Context(), "", sample.with(c.edit))
		if invalid, is := errors.AsType[*Invalid](err); !is || !strings.HasPrefix(invalid.Problems[0], c.want) {
			t.Errorf("%s: %v, want *Invalid with %q", name, err, c.want)
		}
	}
}

func TestWhatCannotBeFollowedMakesTheGraphIncomplete(t *testing.T) {
	for name, c := range map[string]struct {
		edit memoryTree
		want string
	}{
		"a path out of the repository":    {edited(t, "tools/Cargo.toml", "../crates/base", "../../x"), "tools/Cargo.toml: the path of base leads out of the repository"},
		"a path through a link":           {edited(t, "tools/Cargo.toml", "../crates/base", "link").with(memoryTree{"tools/link": "mode 120000 ../crates/base"}), "tools/Cargo.toml: tools/link is behind a symbolic link"},
		"a path into a submodule":         {edited(t, "tools/Cargo.toml", "../crates/base", "sub/x").with(memoryTree{"tools/sub": "mode 160000 1234"}), "tools/Cargo.toml: tools/sub/x is in a submodule"},
		"a member that is a link":         {memoryTree{"crates/link": "mode 120000 ../stray"}, "Cargo.toml: member crates/* leads through the symbolic link crates/link"},
		"a manifest that is a link":       {memoryTree{"tools/Cargo.toml": "mode 120000 ../stray/Cargo.toml"}, "tools/Cargo.toml is a symbolic link; put the file there"},
		"paths in the configuration":      {memoryTree{".cargo/config.toml": "paths = [\"x\"]\n"}, ".cargo/config.toml: it sets paths"},
		"a lock file of another format":   {memoryTree{"Cargo.lock": "version = 5\n"}, "Cargo.lock: format 5 is newer than this adapter"},
		"a member outside the repository": {edited(t, "Cargo.toml", "\"tools\"", "\"../tools\""), "Cargo.toml: member ../tools is outside the repository"},
	} {
		graph := load(t, sample.with(c.edit))
		if !slices.Contains(graph.Unknown(), c.want) {
			t.Errorf("%s: %q, want %q", name, graph.Unknown(), c.want)
		}
	}
}

func TestATreeWithoutPackagesIsNone(t *testing.T) {
	for name, tree := range map[string]memoryTree{
		"nothing": {}, "no Rust": {"go.mod": "module m\n"}, "test data": {"a/testdata/Cargo.toml": "x"}, "a vendored package": {"vendor/x/Cargo.toml": "[package]\nname = \"x\"\n"},
	} {
		if _, err := newLoader(t, Options{}).Load(t.Context(), "", tree); !errors.Is(err, ErrNoPackage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ignored := memoryTree{"a/b/Cargo.toml": "x"}
	if _, err := newLoader(t, Options{IgnoreFolders: []string{"a"}}).Load(t.Context(), "", ignored); !errors.Is(err, ErrNoPackage) {
		t.Errorf("an ignored folder: %v", err)
	}
}

// unreadable fails for every blob.
type unreadable struct{ memoryTree }

var errLost = errors.New("the mirror is lost")

func (unreadable) Blob(context.Context, string, int64) ([]byte, error) { return nil, errLost }

func TestATreeThatCannotBeReadIsNotTheChangesFault(t *testing.T) {
	for _, tree := range []gittree.Tree{unreadable{sample}, unreadable{sample.with(memoryTree{"link": "mode 120000 x"})}} {
		if _, err := newLoader(t, Options{}).Load(t.Context(), "", tree); !errors.Is(err, errLost) {
			t.Errorf("%v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newLoader(t, Options{}).Load(ctx, "", sample); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestOptionsThatCannotBeMeantAreRefused(t *testing.T) {
	for want, o := range map[string]Options{
		"write each variable once": {Env: []string{"RUSTFLAGS"}}, "an input without files": {Inputs: []Input{{}}}, "pattern": {Inputs: []Input{{Files: []string{"../x"}}}},
		"it needs a name": {Commands: Commands{Test: []Template{{Name: "x"}}}},
	} {
		if _, err := NewLoader(o, Memory{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
