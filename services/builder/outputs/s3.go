package outputs

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"

	"github.com/minio/minio-go/v7"

	"landfall.build/platform/bucket"
	"landfall.build/platform/configuration"
)

// S3 is a bucket: an entry is an object under PREFIX/entries, by its id, a file one under PREFIX/files, by its digest. An object
// becomes visible when it is complete. If several builders write one, the last one stays.
type S3 struct {
	client         *minio.Core
	bucket, prefix string
	// single is up to how many bytes a file is sent in one request.
	single int64
}

// mostSingle is S3.single of a new one, in bytes: a request that fails is sent again as a whole.
const mostSingle = 64 << 20

// NewS3 returns the bucket at s3://bucket/prefix, as [bucket.Open] does.
func NewS3(address string, place configuration.SharedBucket, user, password string, security *tls.Config) (*S3, error) {
	b, err := bucket.Open(address, place, user, password, security)
	return &S3{client: b.Client, bucket: b.Name, prefix: b.Prefix, single: mostSingle}, err
}

func (s *S3) entry(id string) string  { return s.prefix + "entries/" + id }
func (s *S3) file(hash string) string { return s.prefix + "files/" + hash }

// Entry is of [Remote].
func (s *S3) Entry(ctx context.Context, id string) ([]byte, error) {
	content, _, err := s.get(ctx, s.entry(id))
	if err != nil {
		return nil, err
	}
	defer content.Close()
	return readBounded(content, mostEntry)
}

// PutEntry is of [Remote].
func (s *S3) PutEntry(ctx context.Context, id string, content []byte, _ []Digest) error {
	return s.put(ctx, s.entry(id), digestOf(content), bytes.NewReader(content))
}

// File is of [Remote].
func (s *S3) File(ctx context.Context, d Digest) (io.ReadCloser, error) {
	content, size, err := s.get(ctx, s.file(d.Hash))
	if err == nil && size != d.Size {
		content.Close()
		err = fmt.Errorf("%w: %s has %d bytes, not %d", ErrMissing, s.file(d.Hash), size, d.Size)
	}
	return content, err
}

// PutFile is of [Remote].
func (s *S3) PutFile(ctx context.Context, d Digest, content io.ReadSeeker, replace bool) error {
	if !replace {
		if info, err := s.client.StatObject(ctx, s.bucket, s.file(d.Hash), minio.StatObjectOptions{}); err == nil && info.Size == d.Size {
			return nil
		} else if ctx.Err() != nil {
			return err
		}
	}
	return s.put(ctx, s.file(d.Hash), d, content)
}

func (s *S3) get(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	content, info, _, err := s.client.GetObject(ctx, s.bucket, name, minio.GetObjectOptions{})
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return nil, 0, ErrMissing
	}
	if err != nil {
		return nil, 0, fmt.Errorf("the bucket %s: %w", s.bucket, err)
	}
	return content, info.Size, nil
}

// put sends an object with its digest, which the service compares.
func (s *S3) put(ctx context.Context, name string, d Digest, content io.ReadSeeker) (err error) {
	o := minio.PutObjectOptions{ContentType: "application/octet-stream", DisableContentSha256: true}
	if d.Size <= s.single {
		_, err = s.client.PutObject(ctx, s.bucket, name, content, d.Size, "", d.Hash, o)
	} else {
		o.PartSize, o.NumThreads = uint64(s.single), 2
		_, err = s.client.Client.PutObject(ctx, s.bucket, name, content, d.Size, o)
	}
	if err != nil {
		return fmt.Errorf("the bucket %s: %w", s.bucket, err)
	}
	return nil
}
