package main

import "github.com/spf13/cobra"

// toolCommands are the commands that are no part of the running queue.
func toolCommands() []*cobra.Command { return nil }
