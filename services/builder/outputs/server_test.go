package outputs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"net"
	"slices"
	"strings"
	"testing"

	remoteexecution "github.com/bazelbuild/remote-apis/build/bazel/remote/execution/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// byGRPC is a bazelCache by the published services, with ByteStream as the client writes it.
type byGRPC struct {
	remoteexecution.UnimplementedActionCacheServer
	remoteexecution.UnimplementedContentAddressableStorageServer
	*bazelCache
	instance string
}

func serveGRPC(t *testing.T, b *bazelCache, security *tls.Config) (address string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &byGRPC{bazelCache: b, instance: "landfall"}
	with := insecure.NewCredentials()
	if security != nil {
		with = credentials.NewTLS(security)
	}
	server := grpc.NewServer(grpc.Creds(with), grpc.ForceServerCodecV2(either{}), grpc.UnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if err := g.refuse(ctx); err != nil {
			return nil, err
		}
		if named := request.(interface{ GetInstanceName() string }); named.GetInstanceName() != g.instance {
			return nil, status.Error(codes.InvalidArgument, "another instance")
		}
		return handle(ctx, request)
	}))
	remoteexecution.RegisterActionCacheServer(server, g)
	remoteexecution.RegisterContentAddressableStorageServer(server, g)
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "google.bytestream.ByteStream", HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{
		{StreamName: "Read", ServerStreams: true, Handler: g.streamRead}, {StreamName: "Write", ClientStreams: true, Handler: g.streamWrite},
	}}, g)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

// either takes messages of types, and those that are encoded already.
type either struct{}

func (either) Name() string { return "proto" }

func (either) Marshal(message any) (mem.BufferSlice, error) {
	if _, is := message.(*[]byte); is {
		return encoded{}.Marshal(message)
	}
	return encoding.GetCodecV2("proto").Marshal(message)
}

func (either) Unmarshal(data mem.BufferSlice, message any) error {
	if _, is := message.(*[]byte); is {
		return encoded{}.Unmarshal(data, message)
	}
	return encoding.GetCodecV2("proto").Unmarshal(data, message)
}

func (g *byGRPC) refuse(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	md, _ := metadata.FromIncomingContext(ctx)
	known := []string{"Basic " + base64.StdEncoding.EncodeToString([]byte("ada:secret")), "Bearer secret"}
	if got := md.Get("authorization"); len(got) != 1 || !slices.Contains(known, got[0]) {
		return status.Error(codes.Unauthenticated, "who are you?")
	}
	if g.fault != 0 {
		return status.Error(codes.ResourceExhausted, "full")
	}
	return nil
}

func (g *byGRPC) GetActionResult(_ context.Context, r *remoteexecution.GetActionResultRequest) (*remoteexecution.ActionResult, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	content, there := g.kept["ac/"+r.ActionDigest.Hash]
	result := &remoteexecution.ActionResult{}
	if !there || proto.Unmarshal(content, result) != nil {
		return nil, status.Error(codes.NotFound, "no result")
	}
	return result, nil
}

func (g *byGRPC) UpdateActionResult(_ context.Context, r *remoteexecution.UpdateActionResultRequest) (*remoteexecution.ActionResult, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	content, err := proto.Marshal(r.ActionResult)
	if err != nil || !g.put("ac/"+r.ActionDigest.Hash, content) {
		return nil, status.Error(codes.FailedPrecondition, "a file is not there")
	}
	return r.ActionResult, nil
}

func (g *byGRPC) FindMissingBlobs(_ context.Context, r *remoteexecution.FindMissingBlobsRequest) (*remoteexecution.FindMissingBlobsResponse, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	answer := &remoteexecution.FindMissingBlobsResponse{}
	for _, d := range r.BlobDigests {
		if _, there := g.kept["cas/"+d.Hash]; !there {
			answer.MissingBlobDigests = append(answer.MissingBlobDigests, d)
		}
	}
	return answer, nil
}

func (g *byGRPC) BatchUpdateBlobs(_ context.Context, r *remoteexecution.BatchUpdateBlobsRequest) (*remoteexecution.BatchUpdateBlobsResponse, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	answer := &remoteexecution.BatchUpdateBlobsResponse{}
	for _, blob := range r.Requests {
		one := &remoteexecution.BatchUpdateBlobsResponse_Response{Digest: blob.Digest}
		if !g.put("cas/"+blob.Digest.Hash, blob.Data) {
			one.Status = status.New(codes.InvalidArgument, "another content").Proto()
		}
		answer.Responses = append(answer.Responses, one)
	}
	return answer, nil
}

func (g *byGRPC) BatchReadBlobs(_ context.Context, r *remoteexecution.BatchReadBlobsRequest) (*remoteexecution.BatchReadBlobsResponse, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	answer := &remoteexecution.BatchReadBlobsResponse{}
	for _, d := range r.Digests {
		one := &remoteexecution.BatchReadBlobsResponse_Response{Digest: d}
		content, there := g.kept["cas/"+d.Hash]
		if one.Data = bytes.Clone(content); !there {
			one.Status = status.New(codes.NotFound, "not there").Proto()
		}
		answer.Responses = append(answer.Responses, one)
	}
	return answer, nil
}

func (g *byGRPC) streamRead(_ any, stream grpc.ServerStream) error {
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	if err := g.refuse(stream.Context()); err != nil {
		return err
	}
	resource, _, _ := lastField(request, readResource)
	parts := strings.Split(string(resource), "/")
	g.mu.Lock()
	var content []byte
	there := len(parts) == 4 && parts[0] == g.instance && parts[1] == "blobs"
	if there {
		content, there = g.kept["cas/"+parts[2]]
		content = bytes.Clone(content)
	}
	g.mu.Unlock()
	if !there {
		return status.Error(codes.NotFound, "not there")
	}
	for part := range slices.Chunk(content, 1000_000) {
		message := protowire.AppendBytes(protowire.AppendTag(nil, streamedData, protowire.BytesType), part)
		if err := stream.SendMsg(&message); err != nil {
			return err
		}
	}
	return nil
}

func (g *byGRPC) streamWrite(_ any, stream grpc.ServerStream) error {
	if err := g.refuse(stream.Context()); err != nil {
		return err
	}
	var content []byte
	var parts []string
	for finished := uint64(0); finished == 0; {
		var request []byte
		if err := stream.RecvMsg(&request); err != nil {
			return err
		}
		if name, _, named := lastField(request, writeResource); named {
			parts = strings.Split(string(name), "/")
		}
		_, offset, _ := lastField(request, writeOffset)
		if int(offset) != len(content) {
			return status.Error(codes.InvalidArgument, "another offset")
		}
		data, _, _ := lastField(request, streamedData)
		content = append(content, data...)
		_, finished, _ = lastField(request, writeFinish)
	}
	sum := sha256.Sum256(content)
	if len(parts) != 6 || parts[0] != g.instance || parts[1] != "uploads" || parts[3] != "blobs" || parts[4] != hex.EncodeToString(sum[:]) {
		return status.Error(codes.InvalidArgument, "another name")
	}
	g.mu.Lock()
	g.put("cas/"+parts[4], content)
	g.mu.Unlock()
	answer := protowire.AppendVarint(protowire.AppendTag(nil, writeCommitted, protowire.VarintType), uint64(len(content)))
	return stream.SendMsg(&answer)
}
