// Package bucket opens buckets of object stores that speak S3's protocol.
package bucket

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"landfall.build/platform/configuration"
)

const (
	// mostTries is how often a request is sent if it fails by chance.
	mostTries = 3
	// mostIdle is how many connections are kept open while none is used.
	mostIdle = 16
)

// Bucket is a bucket, and what the names of the objects in it begin with.
type Bucket struct {
	Client *minio.Core
	Name   string
	// Prefix is "" or ends with a slash.
	Prefix string
}

// Open returns the bucket at s3://bucket/prefix. It does not ask the service. Without a user the credentials are those that AWS's
// variables and its file of credentials have.
func Open(address string, place configuration.SharedBucket, user, password string, security *tls.Config) (Bucket, error) {
	at, err := url.Parse(address)
	if err != nil {
		return Bucket{}, errors.New("url is not an address")
	}
	endpoint, err := url.Parse(place.Endpoint)
	if err != nil {
		return Bucket{}, errors.New("s3.endpoint is not an address")
	}
	if place.Endpoint == "" {
		endpoint = &url.URL{Scheme: "https", Host: "s3." + place.Region + ".amazonaws.com"}
	}
	own := credentials.NewStaticV4(user, password, "")
	if user == "" {
		own = credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}})
	}
	client, err := minio.NewCore(endpoint.Host, &minio.Options{
		Creds: own, Secure: endpoint.Scheme == "https", Transport: Transport(security), Region: place.Region, MaxRetries: mostTries,
		BucketLookup: map[string]minio.BucketLookupType{
			configuration.AddressingAuto: minio.BucketLookupAuto, configuration.AddressingPath: minio.BucketLookupPath, configuration.AddressingVirtual: minio.BucketLookupDNS,
		}[place.Addressing],
	})
	if err != nil {
		return Bucket{}, err
	}
	b := Bucket{Client: client, Name: at.Host, Prefix: strings.Trim(at.Path, "/")}
	if b.Prefix != "" {
		b.Prefix += "/"
	}
	return b, nil
}

// Transport returns the transport of a store by HTTP.
func Transport(security *tls.Config) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = 30 * time.Second
	t.MaxIdleConnsPerHost = mostIdle
	t.TLSClientConfig = security
	return t
}
