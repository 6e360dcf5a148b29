package outputs

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of the messages of google.bytestream.ByteStream (decision 0103 has why they are written by hand).
const (
	readResource   = 1 // of ReadRequest
	writeResource  = 1 // of WriteRequest
	writeOffset    = 2
	writeFinish    = 3
	streamedData   = 10 // of WriteRequest and ReadResponse
	writeCommitted = 1  // of WriteResponse
)

const (
	byteStreamRead  = "/google.bytestream.ByteStream/Read"
	byteStreamWrite = "/google.bytestream.ByteStream/Write"
	// chunk is how many bytes of a file a message has.
	chunk = 256 << 10
)

// encoded is a codec whose messages are encoded by the caller.
type encoded struct{}

func (encoded) Name() string { return "proto" }

func (encoded) Marshal(message any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*message.(*[]byte))}, nil
}

func (encoded) Unmarshal(data mem.BufferSlice, message any) error {
	*message.(*[]byte) = data.Materialize()
	return nil
}

// stream begins a call of ByteStream; it ends with its context.
func (g *GRPC) stream(ctx context.Context, method string) (grpc.ClientStream, error) {
	return g.connection.NewStream(g.known(ctx), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method, grpc.ForceCodecV2(encoded{}))
}

func (g *GRPC) resource(format string, arguments ...any) string {
	name := fmt.Sprintf(format, arguments...)
	if g.instance != "" {
		name = g.instance + "/" + name
	}
	return name
}

// read opens a file of any size.
func (g *GRPC) read(ctx context.Context, d Digest) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancel(ctx)
	r := &streamed{cancel: cancel}
	var err error
	if r.stream, err = g.stream(ctx, byteStreamRead); err == nil {
		request := protowire.AppendString(protowire.AppendTag(nil, readResource, protowire.BytesType), g.resource("blobs/%s/%d", d.Hash, d.Size))
		err = errors.Join(r.stream.SendMsg(&request), r.stream.CloseSend())
	}
	if err == nil {
		err = r.fill() // says whether it is missing
	}
	if err != nil && err != io.EOF {
		cancel()
		return nil, failed(err)
	}
	return r, nil
}

// streamed is a file that is being read.
type streamed struct {
	stream grpc.ClientStream
	cancel context.CancelFunc
	data   []byte
	end    error
}

// fill receives the next message.
func (r *streamed) fill() error {
	var message []byte
	if r.end = r.stream.RecvMsg(&message); r.end != nil {
		return r.end
	}
	r.data, _, _ = lastField(message, streamedData)
	return nil
}

// Read is of [io.Reader].
func (r *streamed) Read(into []byte) (int, error) {
	for len(r.data) == 0 {
		if r.end != nil {
			return 0, r.end
		}
		if err := r.fill(); err != nil {
			return 0, failed(err)
		}
	}
	n := copy(into, r.data)
	r.data = r.data[n:]
	return n, nil
}

// Close is of [io.Closer].
func (r *streamed) Close() error {
	r.cancel()
	return nil
}

// write sends a file of any size. The cache may answer before the end, if it has the file.
func (g *GRPC) write(ctx context.Context, d Digest, content io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := g.stream(ctx, byteStreamWrite)
	if err != nil {
		return err
	}
	buffer := make([]byte, chunk)
	for sent := int64(0); sent < d.Size; {
		n, err := io.ReadFull(content, buffer[:min(chunk, d.Size-sent)])
		if err != nil {
			return err
		}
		var request []byte
		if sent == 0 {
			request = protowire.AppendString(protowire.AppendTag(request, writeResource, protowire.BytesType), g.resource("uploads/%s/blobs/%s/%d", uuid.NewString(), d.Hash, d.Size))
		}
		request = protowire.AppendVarint(protowire.AppendTag(request, writeOffset, protowire.VarintType), uint64(sent))
		sent += int64(n)
		request = protowire.AppendVarint(protowire.AppendTag(request, writeFinish, protowire.VarintType), protowire.EncodeBool(sent == d.Size))
		request = protowire.AppendBytes(protowire.AppendTag(request, streamedData, protowire.BytesType), buffer[:n])
		if err := stream.SendMsg(&request); err == io.EOF {
			break // the answer says why
		} else if err != nil {
			return err
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	var answer []byte
	if err := stream.RecvMsg(&answer); err != nil {
		return err
	}
	if _, committed, _ := lastField(answer, writeCommitted); int64(committed) != d.Size {
		return fmt.Errorf("the store has taken %d bytes of %d", int64(committed), d.Size)
	}
	return nil
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
