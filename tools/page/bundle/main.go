// Command bundle makes the types of the API and then, by esbuild, the web page's scripts and style of their sources. With -check it
// compares what it makes with what is committed, byte for byte, and writes nothing.
//
// Usage: bundle [-check] WEB-FOLDER NODE-MODULES OPENAPI
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/evanw/esbuild/pkg/api"
)

func main() {
	check := flag.Bool("check", false, "compare with the committed bundle, and write nothing")
	flag.Parse()
	if flag.NArg() != 3 {
		fmt.Fprintln(os.Stderr, "usage: bundle [-check] WEB-FOLDER NODE-MODULES OPENAPI")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), flag.Arg(1), flag.Arg(2), *check); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

func run(web, modules, document string, check bool) error {
	declared, err := types(document)
	if err != nil {
		return fmt.Errorf("types of %s: %w", document, err)
	}
	if err := put(filepath.Join(web, "src", "openapi.ts"), declared, check); err != nil {
		return err
	}
	files, err := build(web, modules)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := put(f.Path, f.Contents, check); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(filepath.Join(web, "dist"))
	if err == nil && len(entries) != len(files) {
		err = fmt.Errorf("%s/dist has %d files, its sources make %d", web, len(entries), len(files))
	}
	return err
}

// put writes a file, or compares it with the one that is there.
func put(name string, content []byte, check bool) error {
	if !check {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		return os.WriteFile(name, content, 0o644)
	}
	committed, err := os.ReadFile(name)
	if err == nil && !bytes.Equal(committed, content) {
		err = fmt.Errorf("%s is not what its sources make: run make page", name)
	}
	return err
}

// build returns the files of the bundle. They depend on the sources and the pinned packages alone, not on where those are.
func build(web, modules string) ([]api.OutputFile, error) {
	web, err := filepath.Abs(web)
	if err != nil {
		return nil, err
	}
	if modules, err = filepath.Abs(modules); err != nil {
		return nil, err
	}
	result := api.Build(api.BuildOptions{
		EntryPoints:       []string{"src/page.tsx", "src/worker.ts", "src/page.css"},
		AbsWorkingDir:     web,
		Outdir:            "dist",
		NodePaths:         []string{modules},
		Bundle:            true,
		MinifyWhitespace:  true,
		MinifyIdentifiers: true,
		MinifySyntax:      true,
		Format:            api.FormatIIFE,
		Target:            api.ES2022,
		Charset:           api.CharsetUTF8,
		LegalComments:     api.LegalCommentsNone,
		JSX:               api.JSXAutomatic,
		JSXImportSource:   "preact",
		LogLevel:          api.LogLevelSilent,
	})
	if len(result.Errors) > 0 {
		return nil, errors.New(api.FormatMessages(result.Errors, api.FormatMessagesOptions{Kind: api.ErrorMessage})[0])
	}
	return result.OutputFiles, nil
}
