// Package gitlab tests the hosts service on a fake of GitLab, over a real git repository: no real GitLab is at hand.
package gitlab
