// Package github tests the hosts service on a fake of GitHub, over a real git repository: no real GitHub is at hand.
package github
