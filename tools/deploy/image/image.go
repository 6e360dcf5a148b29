package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// user is the one that the image runs as; the manifests name it too.
const user = 10001

// Where the image has things.
const (
	home           = "/var/lib/landfall"
	clickhouseHome = "/usr/local/lib/landfall/clickhouse"
)

// Options say what goes into an image.
type Options struct {
	// Binary is the command landfall, and Version what it calls itself.
	Binary, Version string
	// ClickHouse is the folder of an embedded ClickHouse, "" for none.
	ClickHouse string
	// Dir is an empty folder for what is fetched and made, which has to stay as long as the image is used.
	Dir string
}

// Build makes the image. It needs apt-get and dpkg-deb, and the Debian that apt is configured for is the one that the image has.
func Build(ctx context.Context, o Options) (v1.Image, error) {
	packages, err := fetch(ctx, filepath.Join(o.Dir, "packages"))
	if err != nil {
		return nil, err
	}
	contents := []func(*layer) error{func(l *layer) error { return l.debian(ctx, packages) }}
	if o.ClickHouse != "" {
		contents = append(contents, func(l *layer) error { return l.folder(o.ClickHouse, clickhouseHome) })
	}
	contents = append(contents, func(l *layer) error { return l.file(o.Binary, "/usr/local/bin/landfall", 0o755) })
	image := empty.Image
	for i, content := range contents {
		path := filepath.Join(o.Dir, fmt.Sprintf("layer-%d.tar", i))
		if err := writeLayer(path, content); err != nil {
			return nil, err
		}
		layer, err := tarball.LayerFromFile(path)
		if err != nil {
			return nil, err
		}
		if image, err = mutate.AppendLayers(image, layer); err != nil {
			return nil, err
		}
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", "amd64"
	id := strconv.Itoa(user)
	file.Config = v1.Config{
		User: id + ":" + id, WorkingDir: home, Entrypoint: []string{"landfall"},
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + home, "LANDFALL_CLICKHOUSE_HOME=" + clickhouseHome},
		Labels: map[string]string{
			"org.opencontainers.image.title": "Landfall", "org.opencontainers.image.version": o.Version,
		},
	}
	return mutate.ConfigFile(image, file)
}
