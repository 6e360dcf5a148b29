package stack_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestMessagesOfLogsAreConstants: the name of an event is made of its message, and lines of one kind are limited by it.
func TestMessagesOfLogsAreConstants(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	found := 0
	for _, module := range []string{"platform", "services", "tools/pipeline", "tools/embedded", "tools/cmd"} {
		err := filepath.WalkDir(filepath.Join(root, module), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				call, is := n.(*ast.CallExpr)
				if !is || len(call.Args) == 0 {
					return true
				}
				method, is := call.Fun.(*ast.SelectorExpr)
				if !is || !isLogger(method.X) {
					return true
				}
				switch method.Sel.Name {
				case "Debug", "Info", "Warn", "Error":
				default:
					return true
				}
				found++
				switch message := call.Args[0].(type) {
				case *ast.BasicLit:
				case *ast.SelectorExpr, *ast.Ident: // a constant of a package
					if name := lastName(message); !ast.IsExported(name) {
						t.Errorf("%s: the message is the variable %s", set.Position(call.Pos()), name)
					}
				default:
					t.Errorf("%s: the message is made; say what differs in attributes", set.Position(call.Pos()))
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 60 {
		t.Errorf("only %d lines of logs were found", found)
	}
}

// lastName returns the name of an identifier, without its package.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// isLogger reports whether an expression is named as loggers are, or is With of one.
func isLogger(e ast.Expr) bool {
	if call, is := e.(*ast.CallExpr); is {
		f, is := call.Fun.(*ast.SelectorExpr)
		return is && (f.Sel.Name == "With" && isLogger(f.X) || f.Sel.Name == "logger")
	}
	name := strings.ToLower(lastName(e))
	return name == "log" || name == "logger"
}
