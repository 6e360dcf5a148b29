// Command image makes the container image that the chart and the compose files run, without a daemon: layers of Debian packages, of the
// embedded ClickHouse where it is given, and of the command landfall. The same packages and the same command give the same image.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	o := Options{}
	var tag, output string
	flag.StringVar(&o.Binary, "binary", "bin/landfall", "the command, built with CGO_ENABLED=0")
	flag.StringVar(&o.Version, "version", "development", "what it calls itself")
	flag.StringVar(&o.ClickHouse, "clickhouse", "", "folder of an embedded ClickHouse, as tools/embedded/clickhouse/install makes it; none if empty")
	flag.StringVar(&tag, "tag", "landfall:development", "the image's name")
	flag.StringVar(&output, "output", "bin/landfall-image.tar", "archive, for docker load, podman load, crane push, ctr images import")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unknown argument %q", flag.Arg(0))
	}
	named, err := name.NewTag(tag)
	if err != nil {
		return err
	}
	if o.Dir, err = os.MkdirTemp("", "landfall-image-"); err != nil {
		return err
	}
	defer os.RemoveAll(o.Dir)
	image, err := Build(ctx, o)
	if err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	if err := tarball.WriteToFile(output, named, image); err != nil {
		return err
	}
	fmt.Printf("%s is in %s, %s\n", tag, output, digest)
	return nil
}
