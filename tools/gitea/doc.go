// Package gitea tests the hosts service on a real Gitea: make hosts-test.
package gitea
