package archive

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/minio/minio-go/v7"

	"landfall.build/platform/bucket"
)

// Bucket is a store in a bucket of S3's protocol.
type Bucket bucket.Bucket

func (b Bucket) String() string { return "s3://" + b.Name + "/" + b.Prefix }

// Names is of [Store].
func (b Bucket) Names(ctx context.Context, folder string) ([]string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing where it is left
	var names []string
	for object := range b.Client.Client.ListObjects(ctx, b.Name, minio.ListObjectsOptions{Prefix: b.Prefix + folder, Recursive: true}) {
		if object.Err != nil {
			return nil, fmt.Errorf("the bucket %s: %w", b.Name, object.Err)
		}
		names = append(names, strings.TrimPrefix(object.Key, b.Prefix))
	}
	return names, ctx.Err()
}

// Get is of [Store].
func (b Bucket) Get(ctx context.Context, name string) ([]byte, error) {
	content, _, _, err := b.Client.GetObject(ctx, b.Name, b.Prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, fmt.Errorf("the bucket %s: %w", b.Name, err)
	}
	defer content.Close()
	return readBounded(content, name)
}

// Put is of [Store]. The service compares a checksum with what it has received.
func (b Bucket) Put(ctx context.Context, name string, file []byte) error {
	_, err := b.Client.PutObject(ctx, b.Name, b.Prefix+name, bytes.NewReader(file), int64(len(file)), "", "", minio.PutObjectOptions{ContentType: "application/octet-stream"})
	if err != nil {
		return fmt.Errorf("the bucket %s: %w", b.Name, err)
	}
	return nil
}
