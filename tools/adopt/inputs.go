package adopt

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"landfall.build/platform/buildgraph/glob"
	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
)

// maxInputs is how many entries analysis.inputs can have, and how many files each of them.
const maxInputs = 100

// inputsOf returns the files that Go tests name by a path from their own folder, where go runs them, and that no target covers.
func inputsOf(ctx context.Context, s *source, uncovered []string) ([]configuration.Input, error) {
	if len(uncovered) == 0 {
		return nil, nil
	}
	entries, err := s.Tree(ctx, s.tree)
	if err != nil {
		return nil, err
	}
	named := map[string]map[string]bool{} // by folder
	for _, e := range entries {
		if e.Kind != gitrepo.File || !strings.HasSuffix(e.Path, "_test.go") {
			continue
		}
		text, err := s.Blob(ctx, e.Object, maxRead)
		if err != nil {
			continue // too large to be read
		}
		folder := path.Dir(e.Path)
		for _, name := range pathsIn(text) {
			pattern := patternOf(folder, name, uncovered)
			if pattern == "" {
				continue
			}
			if named[folder] == nil {
				named[folder] = map[string]bool{}
			}
			named[folder][pattern] = true
		}
	}
	var inputs []configuration.Input
	for _, folder := range slices.Sorted(maps.Keys(named)) {
		files := slices.Sorted(maps.Keys(named[folder]))
		same := slices.IndexFunc(inputs, func(in configuration.Input) bool { return slices.Equal(in.Files, files) && len(in.Folders) < maxInputs })
		switch {
		case same >= 0:
			inputs[same].Folders = append(inputs[same].Folders, folder)
		case len(inputs) < maxInputs && len(files) <= maxInputs:
			inputs = append(inputs, configuration.Input{Folders: []string{folder}, Files: files})
		}
	}
	return inputs, nil
}

// pathsIn returns the paths that lead out of a folder in the text of a Go file: single texts and what is joined of several.
func pathsIn(text []byte) []string {
	if !strings.Contains(string(text), `"..`) {
		return nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	var paths []string
	joined := map[ast.Expr]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if f, is := n.Fun.(*ast.SelectorExpr); is && f.Sel.Name == "Join" {
				var words []string
				for _, argument := range n.Args {
					word, is := textOf(argument)
					if !is {
						break // What follows is below the folder that the words before it name.
					}
					words, joined[argument] = append(words, word), true
				}
				paths = append(paths, path.Join(words...))
			}
		case *ast.BasicLit:
			if word, is := textOf(n); is && !joined[n] {
				paths = append(paths, word)
			}
		}
		return true
	})
	return slices.DeleteFunc(paths, func(name string) bool { return !strings.HasPrefix(name, "../") })
}

// textOf returns a text that stands in a Go file.
func textOf(e ast.Expr) (string, bool) {
	literal, is := e.(*ast.BasicLit)
	if !is || literal.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(literal.Value)
	return text, err == nil
}

// patternOf returns the pattern of the uncovered files that a path names from a folder, "" if there are none.
func patternOf(folder, name string, uncovered []string) string {
	at := path.Join(folder, name)
	if strings.HasPrefix(at, "..") || at == "." || strings.HasPrefix(folder+"/", at+"/") {
		return "" // It is outside of the repository, or a folder that holds this one.
	}
	for _, text := range []string{at, at + "/**"} {
		pattern, err := glob.Parse(text)
		if err == nil && slices.ContainsFunc(uncovered, pattern.MatchesFile) {
			return text
		}
	}
	return ""
}
