// Package deploy tests what deploy has for running Landfall: the chart and its manifests against Kubernetes' own types, the compose
// files, the units of systemd, and the image, in which a change is landed. It is a module of its own, so that nothing else takes the
// dependencies of that code: run its tests with GOWORK=off.
package deploy
