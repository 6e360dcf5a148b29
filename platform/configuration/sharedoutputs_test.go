package configuration

import (
	"strings"
	"testing"
)

func TestAStoreOfOutputsIsNamedByOneAddress(t *testing.T) {
	const seal = ", seal: {environment: SEAL}"
	parse := func(outputs string) string { return problemsBeside(t, "builder: {outputs: {"+outputs+"}}") }
	for _, right := range []string{
		"url: https://cache.example.com/landfall" + seal,
		"url: grpcs://cache.example.com" + seal,
		"url: grpc://127.0.0.1:9092/main/landfall, token: {file: /run/token}, token_header: x-api-key" + seal,
		"url: s3://shop" + seal,
		"url: s3://shop.outputs/land/fall, user: ada, password: {environment: KEY}, ca: /etc/ca.pem, s3: {endpoint: \"https://s3.example.com:9000/\", region: eu-west-1, addressing: path}" + seal,
	} {
		if problems := parse(right); problems != "" {
			t.Errorf("%s: %s", right, problems)
		}
	}
	for wrong, want := range map[string]string{
		"url: ftp://cache.example.com" + seal:                                                   "is not the address of a store",
		"url: cache.example.com:443" + seal:                                                     "is not the address of a store",
		"url: \"grpcs://ada:hunter2@cache.example.com\"" + seal:                                 "user and password have fields of their own",
		"url: \"s3://shop?region=x\"" + seal:                                                    "is not the address of a store",
		"url: s3://Shop" + seal:                                                                 "does not name a bucket",
		"url: s3://shop":                                                                        "says in 0 ways where it is",
		"url: s3://shop, user: ada" + seal:                                                      "says in 0 ways where it is",
		"url: s3://shop, s3: {endpoint: s3.example.com}" + seal:                                 "is not the address of a service",
		"url: s3://shop, s3: {endpoint: \"https://s3.example.com/shop\"}" + seal:                "is not the address of a service",
		"url: https://cache.example.com, s3: {region: eu-west-1}" + seal:                        "is for a bucket",
		"url: s3://shop, token: {file: /run/token}" + seal:                                      "is sent by gRPC alone",
		"url: grpcs://c.example.com, token: {file: /t}, user: ada, password: {file: /p}" + seal: "stands beside a user",
		"url: grpcs://c.example.com, token: {file: /t}, token_header: Authorization" + seal:     "in small letters",
		"url: grpcs://c.example.com, token: {file: /t}, token_header: \"grpc-timeout\"" + seal:  "must be the name of a header",
		"url: grpcs://c.example.com, ca: ca.pem" + seal:                                         "must be an absolute path",
		"url: s3://shop, s3: {addressing: host}" + seal:                                         "must be auto, path or virtual",
	} {
		if problems := parse(wrong); !strings.Contains(problems, want) || strings.Contains(problems, "hunter2") {
			t.Errorf("%s: %q, want %q", wrong, problems, want)
		}
	}
}
