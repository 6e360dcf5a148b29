// Package proof goes through random histories with the production cores and loops in virtual time, on a
// log in memory and a model of a repository whose truth is known, and says which promise was broken.
//
// A schedule (Run) is drawn from a seed: sites are queues with their people and mainline, a machine is all
// services on one log, troubles are what goes wrong. checker and order look at what came of it. A rule can
// be left out (Rules): then a promise has to be found broken. A campaign is a row of schedules.
//
// docs/guides/proof.md says what is checked, and what was found.
package proof
