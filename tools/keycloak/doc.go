// Package keycloak tests who is known, and what they may do, on a real Keycloak: make keycloak-test.
package keycloak
