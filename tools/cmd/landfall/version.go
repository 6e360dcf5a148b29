package main

import (
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"landfall.build/tools/release"
)

func versionCommand() *cobra.Command {
	var asJSON, compatibility bool
	c := &cobra.Command{
		Use: "version", Short: "Say which version this is", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if compatibility {
				c := release.Of(version)
				if asJSON {
					return json.NewEncoder(cmd.OutOrStdout()).Encode(c)
				}
				return c.Write(cmd.OutOrStdout())
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]string{
					"version": version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
				})
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "landfall %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
	c.Flags().BoolVar(&compatibility, "compatibility", false, "say what it reads and writes, and which releases it runs beside")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON value")
	return c
}
