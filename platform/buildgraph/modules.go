package buildgraph

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/module"

	"landfall.build/platform/buildgraph/gograph"
)

// Bounds of what one answer of a module proxy may take; module proxies have the same of a go.mod.
const (
	maxGoMod     = 16 << 20
	proxyTimeout = 30 * time.Second
)

// moduleProxy knows what external modules require. What a version requires never changes, so every answer is
// kept: a proxy is asked once for each version.
type moduleProxy struct {
	base   string
	kept   gograph.ProxyFolder // "" for nowhere
	client *http.Client
}

// modulesFrom reads go.mod files from a module proxy, or from a folder laid out like one (file://). What a proxy
// answers is kept in a folder, which may be deleted at any time.
func modulesFrom(proxy, kept string) (gograph.Requirements, error) {
	where, err := url.Parse(proxy)
	if err != nil {
		return nil, fmt.Errorf("the module proxy: %w", err)
	}
	if where.Scheme == "file" {
		return gograph.ProxyFolder(filepath.FromSlash(where.Path)), nil
	}
	return &moduleProxy{base: strings.TrimSuffix(proxy, "/"), kept: gograph.ProxyFolder(kept), client: &http.Client{Timeout: proxyTimeout}}, nil
}

// GoMod implements gograph.Requirements. A version that the proxy does not have is ErrUnknownModule; any other
// answer than its go.mod is worth another try.
func (p *moduleProxy) GoMod(ctx context.Context, path, version string) ([]byte, error) {
	if p.kept != "" {
		content, err := p.kept.GoMod(ctx, path, version)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return content, err
		}
	}
	escapedPath, err := module.EscapePath(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", gograph.ErrUnknownModule, err)
	}
	escapedVersion, err := module.EscapeVersion(version)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", gograph.ErrUnknownModule, err)
	}
	within := escapedPath + "/@v/" + escapedVersion + ".mod"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+"/"+within, nil)
	if err != nil {
		return nil, err
	}
	answer, err := p.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("the module proxy: %w", err)
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusGone:
		return nil, fmt.Errorf("%w: the module proxy does not have %s@%s", gograph.ErrUnknownModule, path, version)
	default:
		return nil, fmt.Errorf("the module proxy answers %s for %s@%s", answer.Status, path, version)
	}
	content, err := io.ReadAll(io.LimitReader(answer.Body, maxGoMod+1))
	if err != nil {
		return nil, fmt.Errorf("read the go.mod of %s@%s from the module proxy: %w", path, version, err)
	}
	if len(content) > maxGoMod {
		return nil, fmt.Errorf("%w: the go.mod of %s@%s is larger than %d bytes", gograph.ErrUnknownModule, path, version, maxGoMod)
	}
	if p.kept != "" {
		// Not keeping it costs a question, no more.
		_ = keep(filepath.Join(string(p.kept), filepath.FromSlash(within)), content)
	}
	return content, nil
}

// keep writes a file as a whole, or not at all.
func keep(file string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	partial, err := os.CreateTemp(filepath.Dir(file), ".partial-*")
	if err != nil {
		return err
	}
	_, err = partial.Write(content)
	if err = errors.Join(err, partial.Close()); err == nil {
		err = os.Rename(partial.Name(), file)
	}
	if err != nil {
		os.Remove(partial.Name())
	}
	return err
}
