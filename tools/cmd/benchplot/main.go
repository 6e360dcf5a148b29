// Command benchplot draws what `go test -bench` printed as a picture: the time of an operation against n, both
// on a logarithmic scale, with a line for each of the benchmark's other parameters.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

const usage = `Draw the lines of a Go benchmark whose names have the parameter n (Name/n=100/k=64): time against n, as SVG on
standard output. Of several counts the fastest stands.

  go test -run '^$' -bench OneEvent -count 5 ./prioritizer/ranking | benchplot -title "One event" BenchmarkOneEvent >event.svg

`

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "benchplot:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out, errs io.Writer) error {
	f := flag.NewFlagSet("benchplot", flag.ContinueOnError)
	f.SetOutput(errs)
	f.Usage = func() { fmt.Fprint(errs, usage); f.PrintDefaults() }
	title := f.String("title", "", "what the picture shows")
	note := f.String("note", "", "a line below it: the machine, its load")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() != 1 {
		return fmt.Errorf("it takes the name of one benchmark, not %d arguments", f.NArg())
	}
	lines, err := read(in, f.Arg(0))
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, draw(*title, *note, lines))
	return err
}
