// Command landfall-clickhouse is a ClickHouse server in a process of its own: it loads libchdb, which holds the
// whole server, and hands its arguments to it.
//
//	landfall-clickhouse [--within FOLDER] LIBCHDB ARGUMENT…
//	landfall-clickhouse --can-confine
//
// With --within the server reaches no files but its own below a folder. The second form ends with 0 where that is possible.
//
// It is no part of the landfall binary because loading a library makes a program depend on the C library of the
// machine that runs it, and landfall is linked statically. tools/embedded/clickhouse starts it, with a terminal
// as its standard input; it ends when that terminal does.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/ebitengine/purego"
)

func main() {
	arguments, folder := os.Args[1:], ""
	if len(arguments) == 1 && arguments[0] == "--can-confine" {
		if err := canConfine(); err != nil {
			fmt.Fprintln(os.Stderr, "landfall-clickhouse:", err)
			os.Exit(1)
		}
		return
	}
	if len(arguments) > 2 && arguments[0] == "--within" {
		folder, arguments = arguments[1], arguments[2:]
	}
	if len(arguments) < 2 {
		fmt.Fprintln(os.Stderr, "usage: landfall-clickhouse [--within FOLDER] LIBCHDB ARGUMENT…; landfall up starts it, not people")
		os.Exit(2)
	}
	if err := serve(folder, arguments[0], arguments[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "landfall-clickhouse:", err)
		os.Exit(1)
	}
}

// serve returns when the server has ended. How it ended is not in the result: the library answers the same for
// a directory that is locked.
func serve(folder, library string, arguments []string) error {
	runtime.LockOSThread()
	handle, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return fmt.Errorf("%s cannot be loaded (make clickhouse installs it): %w", library, err)
	}
	address, err := purego.Dlsym(handle, "chdb_query_cmdline")
	if err != nil {
		return fmt.Errorf("%s is not the libchdb that this was made for: %w", library, err)
	}
	var run func(argc int32, argv **byte) uintptr
	purego.RegisterFunc(&run, address)
	var complaint func(result uintptr) string
	purego.RegisterLibFunc(&complaint, handle, "chdb_result_error")
	if folder != "" {
		// The library begins no thread until it runs.
		if err := confine(folder); err != nil {
			return err
		}
	}
	argv := make([]*byte, 0, len(arguments)+2)
	for _, argument := range append([]string{"clickhouse"}, arguments...) {
		argv = append(argv, &append([]byte(argument), 0)[0])
	}
	argv = append(argv, nil)
	result := run(int32(len(arguments)+1), &argv[0])
	runtime.KeepAlive(argv)
	if result != 0 {
		if text := complaint(result); text != "" {
			return errors.New(text)
		}
	}
	return nil
}
