package buildgraph

import (
	"sync"

	"landfall.build/platform/buildgraph/manifest"
	"landfall.build/platform/configuration"
)

// Loaders are the loaders of a configuration's queues, one each, for all services of a process. Those of queues of one
// repository share what its manifests say. They may be used from several goroutines.
type Loaders struct {
	configuration *configuration.Configuration

	mu        sync.Mutex
	loaders   map[string]*Loader          // by queue
	manifests map[string]*manifest.Loader // by repository
}

// NewLoaders returns the loaders of a configuration. Close them when done.
func NewLoaders(c *configuration.Configuration) *Loaders {
	return &Loaders{configuration: c, loaders: map[string]*Loader{}, manifests: map[string]*manifest.Loader{}}
}

// Of returns the loader of a queue.
func (l *Loaders) Of(queue string) *Loader {
	l.mu.Lock()
	defer l.mu.Unlock()
	if loader := l.loaders[queue]; loader != nil {
		return loader
	}
	settings := l.configuration.Queues[queue]
	manifests := l.manifests[settings.Repository]
	if manifests == nil {
		manifests = manifest.NewLoader(manifest.Memory{})
		l.manifests[settings.Repository] = manifests
	}
	loader := NewLoader(settings, manifests)
	l.loaders[queue] = loader
	return loader
}

// Close ends what the loaders keep running.
func (l *Loaders) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, loader := range l.loaders {
		loader.Close()
	}
}
