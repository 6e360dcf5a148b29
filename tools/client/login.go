package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/signin"
	"landfall.build/tools/login"
)

// SignInWays returns how people sign in at the gateway.
func (c *Client) SignInWays(ctx context.Context) ([]signin.Way, error) {
	var ways api.SignInWays
	err := c.call(ctx, http.MethodGet, "/v1/signin", nil, &ways)
	return ways.Issuers, err
}

// signedIn is what login prints.
type signedIn struct {
	Server  string    `json:"server"`
	Issuer  string    `json:"issuer"`
	Name    string    `json:"name"`
	Expires time.Time `json:"expires"`
	// Refreshed reports whether it lasts longer by itself.
	Refreshed bool `json:"refreshed"`
}

func loginCommand() *cobra.Command {
	var device, noBrowser bool
	var issuer string
	cmd, _ := command("login", "Sign in at the gateway", `Sign in at the gateway by OpenID Connect. The commands are then yours: the tokens are kept in a file
of your configuration folder that only you can read, and refreshed. A browser is opened, or one on
another machine is used (--device).`, none, func(ctx context.Context, s *session, _ []string) error {
		if s.kept == nil {
			return errors.New("there is no folder for credentials (HOME is not set)")
		}
		s.client.token = nil // whoever signs in again has perhaps none that is valid
		way, err := s.chooseWay(ctx, issuer)
		if err != nil {
			return err
		}
		var k login.Kept
		tries := 0
		say := func() {
			if tries++; tries > 1 {
				fmt.Fprintln(s.progress, "The provider refuses offline_access, with which a sign-in lasts. Once more without it:")
			}
		}
		if device {
			k, err = s.kept.Device(ctx, s.client.server, way, func(address, code string) {
				say()
				fmt.Fprintf(s.progress, "Open %s\nand enter the code %s\n", Plain(address), Plain(code))
			})
		} else {
			k, err = s.kept.Browser(ctx, s.client.server, way, func(address string) error {
				say()
				fmt.Fprintf(s.progress, "Sign in with a browser: %s\n", Plain(address))
				if !noBrowser && login.Show(address) != nil {
					fmt.Fprintln(s.progress, "No browser could be opened. Open the address yourself; for one on another machine there is --device.")
				}
				return nil
			})
		}
		if err != nil {
			return err
		}
		if s.asJSON {
			return s.print(signedIn{s.client.server, k.Issuer, k.Name, k.Expires, k.RefreshToken != ""})
		}
		until := ""
		if k.RefreshToken == "" {
			until = " until " + k.Expires.Local().Format("15:04") + ", when it has to be done again"
		}
		fmt.Fprintf(s.out, "Signed in at %s as %s%s.\n", s.client.server, Plain(k.Name), until)
		return nil
	})
	cmd.Flags().BoolVar(&device, "device", false, "with a browser of another machine, where a code is entered")
	cmd.Flags().BoolVar(&noBrowser, "no-browser", false, "open no browser, only print the address")
	cmd.Flags().StringVar(&issuer, "issuer", "", "the issuer, by its name in the gateway's configuration; needed only if there are several")
	return cmd
}

// chooseWay takes the only issuer by which a command signs in, unless one was named.
func (s *session) chooseWay(ctx context.Context, name string) (signin.Way, error) {
	ways, err := s.client.SignInWays(ctx)
	if err != nil {
		return signin.Way{}, err
	}
	ways = slices.DeleteFunc(ways, func(w signin.Way) bool { return w.ClientID == "" })
	var names []string
	for _, w := range ways {
		if names = append(names, w.Name); w.Name == name {
			return w, nil
		}
	}
	switch {
	case len(ways) == 0:
		return signin.Way{}, fmt.Errorf("nobody signs in at %s with a command: its configuration names no issuer with a public client (access.issuers)", s.client.server)
	case name == "" && len(ways) == 1:
		return ways[0], nil
	}
	return signin.Way{}, fmt.Errorf("name an issuer with --issuer: %s", Plain(strings.Join(names, ", ")))
}

func logoutCommand() *cobra.Command {
	var all bool
	cmd, _ := command("logout", "Sign out", "Remove the tokens of landfall login from this machine, and have their issuer take them back.", none, func(ctx context.Context, s *session, _ []string) error {
		if s.kept == nil {
			return errors.New("there is no folder for credentials (HOME is not set)")
		}
		server := s.client.server
		if all {
			server = ""
		}
		gateways, revoked, err := s.kept.Forget(ctx, server)
		if err != nil {
			return err
		}
		if revoked != nil {
			fmt.Fprintf(s.progress, "The tokens are removed here, but their issuer may still take them: %s\n", Plain(revoked.Error()))
		}
		if s.asJSON {
			return s.print(struct {
				SignedOut []string `json:"signed_out"`
			}{append([]string{}, gateways...)})
		}
		if len(gateways) == 0 {
			fmt.Fprintln(s.out, "You were not signed in.")
			return nil
		}
		fmt.Fprintf(s.out, "Signed out at %s.\n", strings.Join(gateways, ", "))
		return nil
	})
	cmd.Flags().BoolVar(&all, "all", false, "at all gateways")
	return cmd
}
