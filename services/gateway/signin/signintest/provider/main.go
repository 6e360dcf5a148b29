// Command provider is signintest's provider in a process of its own, for tests in a browser. It prints its URL on
// standard error, and ends with its input.
//
// Usage: provider USER REDIRECT
package main

import (
	"fmt"
	"io"
	"os"

	"landfall.build/services/gateway/signin/signintest"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: provider USER REDIRECT")
		os.Exit(2)
	}
	p, err := signintest.Start(os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "provider:", err)
		os.Exit(1)
	}
	defer p.Close()
	p.SignIn(os.Args[1])
	fmt.Fprintln(os.Stderr, p.URL)
	_, _ = io.Copy(io.Discard, os.Stdin)
}
