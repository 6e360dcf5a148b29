package outputs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
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
func NewHTTP(url, user, password string) *HTTP {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = 30 * time.Second
	return &HTTP{URL: strings.TrimSuffix(url, "/"), User: user, Password: password, client: &http.Client{Transport: transport}}
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

// get returns what is kept under a name, if it is not longer than so many bytes.
func (h *HTTP) get(ctx context.Context, name string, most int64) ([]byte, error) {
	answer, err := h.do(ctx, http.MethodGet, name, nil, 0)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(io.LimitReader(answer.Body, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("%w: what is kept as %s is too large", ErrMissing, name)
	}
	return content, err
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
	content, err := h.get(ctx, "ac/"+id, mostEntry)
	if err != nil {
		return nil, err
	}
	d, ok := contentOf(content)
	if !ok || d.Size > mostEntry {
		return nil, fmt.Errorf("%w: what is kept as ac/%s is of another kind", ErrMissing, id)
	}
	content, err = h.get(ctx, "cas/"+d.Hash, d.Size)
	if sum := sha256.Sum256(content); err == nil && hex.EncodeToString(sum[:]) != d.Hash {
		err = fmt.Errorf("%w: the content of cas/%s is another", ErrMissing, d.Hash)
	}
	return content, err
}

// PutEntry is of [Remote].
func (h *HTTP) PutEntry(ctx context.Context, id string, content []byte, files []Digest) error {
	sum := sha256.Sum256(content)
	d := Digest{hex.EncodeToString(sum[:]), int64(len(content))}
	if err := h.PutFile(ctx, d, bytes.NewReader(content)); err != nil {
		return err
	}
	result := actionResult(d, files)
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
func (h *HTTP) PutFile(ctx context.Context, d Digest, content io.ReadSeeker) error {
	if answer, err := h.do(ctx, http.MethodHead, "cas/"+d.Hash, nil, 0); err == nil {
		return answer.Body.Close()
	} else if ctx.Err() != nil {
		return err
	}
	return h.put(ctx, "cas/"+d.Hash, content, d.Size)
}

// Fields of the remote execution protocol's messages (build.bazel.remote.execution.v2).
const (
	resultOutputFiles  = 2 // of ActionResult
	resultStdoutDigest = 6
	outputFilePath     = 1 // of OutputFile
	outputFileDigest   = 2
	digestHash         = 1 // of Digest
	digestSize         = 2
)

// actionResult returns an ActionResult, which is all that an action cache has to take: its standard output is the entry, and its
// output files are those of the entry, so that the cache keeps them, and knows the result no more once one is gone.
func actionResult(entry Digest, files []Digest) (message []byte) {
	for _, d := range files {
		var file []byte
		file = protowire.AppendTag(file, outputFilePath, protowire.BytesType)
		file = protowire.AppendString(file, d.Hash)
		file = protowire.AppendTag(file, outputFileDigest, protowire.BytesType)
		file = protowire.AppendBytes(file, digestMessage(d))
		message = protowire.AppendTag(message, resultOutputFiles, protowire.BytesType)
		message = protowire.AppendBytes(message, file)
	}
	message = protowire.AppendTag(message, resultStdoutDigest, protowire.BytesType)
	return protowire.AppendBytes(message, digestMessage(entry))
}

func digestMessage(d Digest) (message []byte) {
	message = protowire.AppendTag(message, digestHash, protowire.BytesType)
	message = protowire.AppendString(message, d.Hash)
	message = protowire.AppendTag(message, digestSize, protowire.VarintType)
	return protowire.AppendVarint(message, uint64(d.Size))
}

// contentOf returns the digest of the standard output of an ActionResult.
func contentOf(message []byte) (d Digest, ok bool) {
	inner, _, ok := lastField(message, resultStdoutDigest)
	if !ok {
		return Digest{}, false
	}
	hash, _, ok := lastField(inner, digestHash)
	_, size, sized := lastField(inner, digestSize)
	d = Digest{Hash: string(hash), Size: int64(size)}
	return d, ok && sized && isHash(d.Hash) && d.Size >= 0
}

// lastField returns the value of a field of a message. Of several the last one counts.
func lastField(message []byte, field protowire.Number) (value []byte, number uint64, ok bool) {
	for len(message) > 0 {
		n, kind, length := protowire.ConsumeTag(message)
		if length < 0 {
			return nil, 0, false
		}
		message = message[length:]
		if length = protowire.ConsumeFieldValue(n, kind, message); length < 0 {
			return nil, 0, false
		}
		if n == field {
			switch kind {
			case protowire.BytesType:
				value, _ = protowire.ConsumeBytes(message)
				ok = true
			case protowire.VarintType:
				number, _ = protowire.ConsumeVarint(message)
				ok = true
			}
		}
		message = message[length:]
	}
	return value, number, ok
}
