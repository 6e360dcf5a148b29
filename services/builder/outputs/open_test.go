package outputs

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"landfall.build/platform/configuration"
)

func shared(t *testing.T, url string) configuration.SharedOutputs {
	t.Setenv("SEAL", "a key that is long enough")
	o := configuration.SharedOutputs{URL: url, TokenHeader: "authorization", S3: configuration.SharedBucket{Region: "us-east-1", Addressing: configuration.AddressingAuto}}
	o.Seal.Environment = "SEAL"
	return o
}

func TestAStoreIsKnownByTheAuthoritiesOfAFile(t *testing.T) {
	backend := s3mem.New()
	if err := backend.CreateBucket("shop"); err != nil {
		t.Fatal(err)
	}
	bucket := httptest.NewTLSServer(gofakes3.New(backend).Server())
	t.Cleanup(bucket.Close)
	cache := httptest.NewTLSServer(&bazelCache{kept: map[string][]byte{}})
	t.Cleanup(cache.Close)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	certificate := bucket.Certificate() // httptest has one for all servers
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}), 0o644); err != nil {
		t.Fatal(err)
	}
	grpcs := serveGRPC(t, &bazelCache{kept: map[string][]byte{}}, &tls.Config{Certificates: bucket.TLS.Certificates})
	for name, o := range map[string]configuration.SharedOutputs{
		"HTTP": shared(t, cache.URL+"/landfall"), "S3": shared(t, "s3://shop"), "gRPC": shared(t, "grpcs://"+grpcs+"/landfall"), "gRPC with a token": shared(t, "grpcs://"+grpcs+"/landfall"),
	} {
		o.User, o.Password.File, o.S3.Endpoint = "ada", secret, bucket.URL
		if name == "gRPC with a token" {
			o.User, o.Token.File = "", secret
		}
		for _, known := range []bool{false, true} {
			if known {
				o.CA = ca
			}
			remote, seal, err := Open(t.Context(), o)
			if err != nil {
				t.Fatal(name, err)
			}
			if err := Try(t.Context(), remote, seal); (err == nil) != known {
				t.Errorf("%s: with the authority %v: %v", name, known, err)
			}
		}
	}
}

func TestWhatAStoreIsAskedWithIsReadOrRefused(t *testing.T) {
	open := filepath.Join(t.TempDir(), "open")
	if err := os.WriteFile(open, []byte("hunter2-hunter2-hunter2"), 0o644); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(o *configuration.SharedOutputs){
		"the password: others can read " + open: func(o *configuration.SharedOutputs) { o.User, o.Password.File = "ada", open },
		"by HTTP, the password: others can read " + open: func(o *configuration.SharedOutputs) {
			o.URL, o.User, o.Password.File = "https://c.example.com", "ada", open
		},
		"the key of builder.outputs.seal: others can read " + open: func(o *configuration.SharedOutputs) { o.Seal = configuration.SecretPlace{File: open} },
		"the token: others can read " + open:                       func(o *configuration.SharedOutputs) { o.URL, o.Token.File = "grpcs://c.example.com", open },
		"it has 7 bytes, and 16 are the least":                     func(o *configuration.SharedOutputs) { t.Setenv("SEAL", "hunter2") },
		"has no certificate":                                       func(o *configuration.SharedOutputs) { o.CA = open },
		"no such file":                                             func(o *configuration.SharedOutputs) { o.CA = open + "x" },
	} {
		o := shared(t, "s3://shop")
		change(&o)
		want = strings.TrimPrefix(want, "by HTTP, ")
		if _, _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// The credentials of a bucket are those of the configuration, else those of AWS's variables, else those of its file. Where the bucket's
// name stands is as configured.
func TestABucketIsAskedWithTheCredentialsThatAreThere(t *testing.T) {
	var asked *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(file, []byte("[default]\naws_access_key_id = of-the-file\naws_secret_access_key = secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
	for _, c := range []struct{ user, variable, want string }{
		{"of-the-configuration", "of-the-variable", "Credential=of-the-configuration/"}, {"", "of-the-variable", "Credential=of-the-variable/"}, {"", "", "Credential=of-the-file/"},
	} {
		t.Setenv("AWS_ACCESS_KEY_ID", c.variable)
		t.Setenv("AWS_SECRET_ACCESS_KEY", c.variable)
		o := shared(t, "s3://shop/outputs")
		o.S3.Endpoint, o.User, o.Password.Environment = server.URL, c.user, "SEAL"
		o.S3.Addressing = configuration.AddressingPath
		remote, _, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := remote.Entry(t.Context(), key("a")); err == nil || strings.Contains(err.Error(), "long enough") {
			t.Error(err)
		}
		if got := asked.Header.Get("Authorization"); !strings.Contains(got, c.want) || !strings.Contains(got, "/us-east-1/s3/") {
			t.Errorf("%s, want %s", got, c.want)
		}
		if asked.URL.Path != "/shop/outputs/entries/"+key("a") {
			t.Error(asked.URL.Path)
		}
	}
	o := shared(t, "s3://shop/outputs")
	o.S3.Endpoint, o.S3.Addressing = server.URL, configuration.AddressingVirtual
	o.S3.Endpoint = strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	remote, _, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	// shop.localhost is this machine by RFC 6761, and need not be known here.
	if _, err := remote.Entry(t.Context(), key("a")); err == nil {
		t.Error("it is found")
	} else if !strings.Contains(err.Error(), "shop.localhost") && !strings.HasPrefix(asked.Host, "shop.localhost") {
		t.Errorf("asked at %s: %v", asked.Host, err)
	}
}

// A file that is too large for one request goes in parts.
func TestALargeFileGoesIntoABucketInParts(t *testing.T) {
	s := fakeS3(t)
	remote := s.open(t, s.address).(*S3)
	remote.single = 5 << 20 // the least that a service takes
	content := strings.Repeat("0123456789abcdef", 11<<20/16) + "end"
	sum := sha256.Sum256([]byte(content))
	d := Digest{hex.EncodeToString(sum[:]), int64(len(content))}
	if err := remote.PutFile(t.Context(), d, strings.NewReader(content), false); err != nil {
		t.Fatal(err)
	}
	file, err := remote.File(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if read, err := io.ReadAll(file); err != nil || string(read) != content {
		t.Errorf("%d bytes, %v", len(read), err)
	}
}
