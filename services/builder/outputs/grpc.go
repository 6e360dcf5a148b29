package outputs

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	remoteexecution "github.com/bazelbuild/remote-apis/build/bazel/remote/execution/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"landfall.build/platform/configuration"
)

// GRPC is a Bazel remote cache by gRPC (build.bazel.remote.execution.v2): entries are in its action cache, as those of [HTTP], files in
// its content-addressed storage.
type GRPC struct {
	connection *grpc.ClientConn
	instance   string
	header     []string // name and value, or none
	results    remoteexecution.ActionCacheClient
	blobs      remoteexecution.ContentAddressableStorageClient
}

// mostBatched is up to how many bytes a file is sent in one message. Servers take 4 MiB, and some half of that.
const mostBatched = 1 << 20

// NewGRPC returns the cache at grpcs://host:port/instance, or grpc:// without TLS. The header is its name and value, or nothing.
func NewGRPC(address string, header []string, security *tls.Config) (*GRPC, error) {
	at, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("url is not an address")
	}
	secured, port := insecure.NewCredentials(), "80"
	if at.Scheme == "grpcs" {
		secured, port = credentials.NewTLS(security), "443"
	}
	if at.Port() == "" {
		at.Host += ":" + port
	}
	connection, err := grpc.NewClient(at.Host,
		grpc.WithTransportCredentials(secured),
		// A store that was away is found again within the time in which it is left alone.
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: time.Second, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 10 * time.Second}, MinConnectTimeout: 5 * time.Second}),
		// A connection that is dead is given up.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(mostMessage)),
	)
	if err != nil {
		return nil, err
	}
	return &GRPC{
		connection: connection, instance: strings.Trim(at.Path, "/"), header: header,
		results: remoteexecution.NewActionCacheClient(connection), blobs: remoteexecution.NewContentAddressableStorageClient(connection),
	}, nil
}

// mostMessage bounds a message of the cache: the largest is an ActionResult that names 50,000 files.
const mostMessage = 16 << 20

// authorization returns the header by which the cache knows who asks.
func authorization(o configuration.SharedOutputs, password, token []byte) []string {
	switch {
	case o.User != "":
		return []string{"authorization", "Basic " + base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%s:%s", o.User, password))}
	case len(token) == 0:
		return nil
	case o.TokenHeader == "authorization":
		return []string{o.TokenHeader, "Bearer " + string(token)}
	}
	return []string{o.TokenHeader, string(token)}
}

func (g *GRPC) known(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, g.header...)
}

// failed returns the error of a call that asks for what may be missing.
func failed(err error) error {
	if status.Code(err) == codes.NotFound {
		return ErrMissing
	}
	return err
}

// Entry is of [Remote].
func (g *GRPC) Entry(ctx context.Context, id string) ([]byte, error) {
	result, err := g.results.GetActionResult(g.known(ctx), &remoteexecution.GetActionResultRequest{InstanceName: g.instance, ActionDigest: actionOf(id)})
	if err != nil {
		return nil, failed(err)
	}
	d, err := contentOf(result, id)
	if err != nil {
		return nil, err
	}
	content, err := g.File(ctx, d)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	return readExactly(content, d)
}

// PutEntry is of [Remote].
func (g *GRPC) PutEntry(ctx context.Context, id string, content []byte, files []Digest) error {
	d := digestOf(content)
	if err := g.PutFile(ctx, d, bytes.NewReader(content), true); err != nil {
		return err
	}
	_, err := g.results.UpdateActionResult(g.known(ctx), &remoteexecution.UpdateActionResultRequest{InstanceName: g.instance, ActionDigest: actionOf(id), ActionResult: actionResult(d, files)})
	return err
}

// File is of [Remote].
func (g *GRPC) File(ctx context.Context, d Digest) (io.ReadCloser, error) {
	if d.Size > mostBatched {
		return g.read(ctx, d)
	}
	answer, err := g.blobs.BatchReadBlobs(g.known(ctx), &remoteexecution.BatchReadBlobsRequest{InstanceName: g.instance, Digests: []*remoteexecution.Digest{digestMessage(d)}})
	if err != nil {
		return nil, failed(err)
	}
	if len(answer.Responses) != 1 {
		return nil, fmt.Errorf("the store answers with %d files for one", len(answer.Responses))
	}
	if err := status.ErrorProto(answer.Responses[0].Status); err != nil {
		return nil, failed(err)
	}
	return io.NopCloser(bytes.NewReader(answer.Responses[0].Data)), nil
}

// PutFile is of [Remote].
func (g *GRPC) PutFile(ctx context.Context, d Digest, content io.ReadSeeker, replace bool) error {
	if !replace {
		lacks, err := g.blobs.FindMissingBlobs(g.known(ctx), &remoteexecution.FindMissingBlobsRequest{InstanceName: g.instance, BlobDigests: []*remoteexecution.Digest{digestMessage(d)}})
		if err != nil || len(lacks.MissingBlobDigests) == 0 {
			return err
		}
	}
	if d.Size > mostBatched {
		return g.write(ctx, d, content)
	}
	data, err := io.ReadAll(io.LimitReader(content, d.Size))
	if err != nil {
		return err
	}
	answer, err := g.blobs.BatchUpdateBlobs(g.known(ctx), &remoteexecution.BatchUpdateBlobsRequest{
		InstanceName: g.instance, Requests: []*remoteexecution.BatchUpdateBlobsRequest_Request{{Digest: digestMessage(d), Data: data}},
	})
	if err != nil {
		return err
	}
	if len(answer.Responses) != 1 {
		return fmt.Errorf("the store answers for %d files that were put, not one", len(answer.Responses))
	}
	return status.ErrorProto(answer.Responses[0].Status)
}

// actionOf returns the digest of the action that an entry stands for. There is no such action, so its size is any.
func actionOf(id string) *remoteexecution.Digest {
	return &remoteexecution.Digest{Hash: id, SizeBytes: 1}
}
