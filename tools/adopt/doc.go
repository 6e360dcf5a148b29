// Package adopt makes a repository ready for a queue (`landfall init`): it looks at the repository and at the machine,
// says in plain sentences what it finds, and writes landfall.config.yaml, and a landfall.yaml for each folder whose build
// system has no adapter. What it says of targets it asks platform/buildgraph, as the services do.
package adopt
