// Package alerts tests the rules of deploy/prometheus and the dashboards of deploy/grafana with Prometheus's own code: what they
// select is served, and each alert fires while its fault lasts. It is a module of its own, so that nothing else takes the
// dependencies of that code: run its tests with GOWORK=off. They need Linux: one gives a process a disk of its own.
package alerts
