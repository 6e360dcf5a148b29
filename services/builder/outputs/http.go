package outputs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	remoteexecution "github.com/bazelbuild/remote-apis/build/bazel/remote/execution/v2"
	"google.golang.org/protobuf/proto"

	"landfall.build/platform/bucket"
)

// HTTP is a Bazel remote cache by HTTP: entries are in its action cache, under URL/ac, files in its content-addressed storage,
// under URL/cas.
type HTTP struct {
	URL string
	// User and Password are sent if there is a user.
	User, Password string
	client         *http.Client
}

// NewHTTP returns the cache at an address.
func NewHTTP(url, user, password string, security *tls.Config) *HTTP {
	return &HTTP{URL: strings.TrimSuffix(url, "/"), User: user, Password: password, client: &http.Client{Transport: bucket.Transport(security)}}
}

// do sends a request, and returns the answer, whose body must be closed, if its status is one of success.
func (h *HTTP) do(ctx context.Context, method, name string, content io.Reader, size int64) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, h.URL+"/"+name, content)
	if err != nil {
		return nil, err
	}
	request.ContentLength = size
	if h.User != "" {
		request.SetBasicAuth(h.User, h.Password)
	}
	answer, err := h.client.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode/100 == 2 {
		return answer, nil
	}
	answer.Body.Close()
	if answer.StatusCode == http.StatusNotFound {
		return nil, ErrMissing
	}
	return nil, fmt.Errorf("%s %s: the store answers %s", method, request.URL.Redacted(), answer.Status)
}

func (h *HTTP) put(ctx context.Context, name string, content io.Reader, size int64) error {
	if size == 0 {
		content = http.NoBody // with another one the length would be unknown
	}
	answer, err := h.do(ctx, http.MethodPut, name, content, size)
	if err != nil {
		if errors.Is(err, ErrMissing) {
			err = fmt.Errorf("the store has no place for %s", name)
		}
		return err
	}
	return answer.Body.Close()
}

// Entry is of [Remote].
func (h *HTTP) Entry(ctx context.Context, id string) ([]byte, error) {
	answer, err := h.do(ctx, http.MethodGet, "ac/"+id, nil, 0)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	content, err := readBounded(answer.Body, mostEntry)
	if err != nil {
		return nil, err
	}
	result := &remoteexecution.ActionResult{}
	if err := proto.Unmarshal(content, result); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMissing, err)
	}
	d, err := contentOf(result, id)
	if err != nil {
		return nil, err
	}
	file, err := h.File(ctx, d)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readExactly(file, d)
}

// PutEntry is of [Remote].
func (h *HTTP) PutEntry(ctx context.Context, id string, content []byte, files []Digest) error {
	d := digestOf(content)
	if err := h.PutFile(ctx, d, bytes.NewReader(content), true); err != nil {
		return err
	}
	result, err := proto.Marshal(actionResult(d, files))
	if err != nil {
		return err
	}
	return h.put(ctx, "ac/"+id, bytes.NewReader(result), int64(len(result)))
}

// File is of [Remote].
func (h *HTTP) File(ctx context.Context, d Digest) (io.ReadCloser, error) {
	answer, err := h.do(ctx, http.MethodGet, "cas/"+d.Hash, nil, 0)
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// PutFile is of [Remote].
func (h *HTTP) PutFile(ctx context.Context, d Digest, content io.ReadSeeker, replace bool) error {
	if !replace {
		if answer, err := h.do(ctx, http.MethodHead, "cas/"+d.Hash, nil, 0); err == nil {
			return answer.Body.Close()
		} else if ctx.Err() != nil {
			return err
		}
	}
	return h.put(ctx, "cas/"+d.Hash, content, d.Size)
}

// actionResult returns all that an action cache has to take: its standard output is the entry, and its output files are those of the
// entry, so that the cache keeps them, and knows the result no more once one is gone.
func actionResult(entry Digest, files []Digest) *remoteexecution.ActionResult {
	result := &remoteexecution.ActionResult{StdoutDigest: digestMessage(entry)}
	for _, d := range files {
		result.OutputFiles = append(result.OutputFiles, &remoteexecution.OutputFile{Path: d.Hash, Digest: digestMessage(d)})
	}
	return result
}

func digestMessage(d Digest) *remoteexecution.Digest {
	return &remoteexecution.Digest{Hash: d.Hash, SizeBytes: d.Size}
}

// contentOf returns the digest of the entry that an action cache has a result of; ErrMissing if it is of another kind.
func contentOf(result *remoteexecution.ActionResult, id string) (Digest, error) {
	d := Digest{result.GetStdoutDigest().GetHash(), result.GetStdoutDigest().GetSizeBytes()}
	if !isHash(d.Hash) || d.Size < 0 || d.Size > mostEntry {
		return d, fmt.Errorf("%w: the result of %s is of another kind", ErrMissing, id)
	}
	return d, nil
}

// readBounded returns content of at most so many bytes; longer content counts as missing.
func readBounded(content io.Reader, most int64) ([]byte, error) {
	read, err := io.ReadAll(io.LimitReader(content, most+1))
	if err == nil && int64(len(read)) > most {
		err = fmt.Errorf("%w: it is too large", ErrMissing)
	}
	return read, err
}

// readExactly returns the content with a digest; any other counts as missing.
func readExactly(content io.Reader, d Digest) ([]byte, error) {
	read, err := readBounded(content, d.Size)
	if sum := sha256.Sum256(read); err == nil && hex.EncodeToString(sum[:]) != d.Hash {
		err = fmt.Errorf("%w: the content of %s is another", ErrMissing, d.Hash)
	}
	return read, err
}
