package identity

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"landfall.build/platform/configuration"
)

var usual = ClaimNames{Name: "name", Email: "email", Groups: "groups"}

func TestAnIdentityIsWhatTheClaimsSay(t *testing.T) {
	for _, c := range []struct {
		name, claims        string
		names               ClaimNames
		wantName, wantEmail string
		groups              []any
	}{
		{"all", `{"sub":"7","name":"Ada","email":"a@x","groups":["a","b"]}`, usual, "Ada", "a@x", []any{"a", "b"}},
		{"one group as a text", `{"sub":"7","groups":"a"}`, usual, "", "", []any{"a"}},
		{"no groups", `{"sub":"7"}`, usual, "", "", []any{}},
		{"groups that are no texts", `{"sub":"7","groups":[1,null,{"a":"b"},"c"]}`, usual, "", "", []any{"c"}},
		{"an unverified address", `{"sub":"7","email":"a@x","email_verified":false}`, usual, "", "", []any{}},
		{"a verified address", `{"sub":"7","email":"a@x","email_verified":true}`, usual, "", "a@x", []any{}},
		{"groups within an object", `{"sub":"7","realm_access":{"roles":["r"]},"groups":["other"]}`, ClaimNames{Groups: "realm_access.roles"}, "", "", []any{"r"}},
		{"a claim with dots in its name", `{"sub":"7","https://x.y/groups":["r"]}`, ClaimNames{Groups: "https://x.y/groups"}, "", "", []any{"r"}},
		{"a name with control characters", `{"sub":"7","name":"A\u001b[31m\nd\u202ea"}`, usual, "A[31mda", "", []any{}},
		{"no claim for groups", `{"sub":"7","":["x"]}`, ClaimNames{}, "", "", []any{}},
	} {
		i, err := FromClaims("https://issuer", []byte(c.claims), c.names)
		if err != nil || i.Subject != "7" || i.Name != c.wantName || i.Email != c.wantEmail || !reflect.DeepEqual(i.Claims[GroupsClaim], c.groups) {
			t.Errorf("%s: %+v %v", c.name, i, err)
		}
	}
	i, _ := FromClaims("https://issuer", []byte(`{"sub":"7","id":9007199254740993}`), usual)
	if i.Claims["id"] != json.Number("9007199254740993") {
		t.Errorf("a number is %v", i.Claims["id"])
	}
}

// TestAnAddressIsVerifiedByWhatNamesIt: a token and the userinfo endpoint may have another address each, one that its user chose.
func TestAnAddressIsVerifiedByWhatNamesIt(t *testing.T) {
	p := &Provider{Settings: configuration.NewIssuer()}
	p.Settings.URL = "https://issuer"
	for _, c := range []struct {
		token, userinfo, email string
		verified               bool
	}{
		{`"email":"a@x","email_verified":true`, ``, "a@x", true},
		{``, `"email":"a@x","email_verified":true`, "a@x", true},
		{`"email":"a@x"`, `"email":"a@x","email_verified":true`, "a@x", true},
		{`"email":"a@x"`, `"email":"b@x","email_verified":true`, "a@x", false},
		{`"email":"a@x","email_verified":true`, `"email":"b@x","email_verified":false`, "a@x", true},
		{`"email":"a@x"`, `"email_verified":true`, "a@x", false},
		{`"email_verified":true`, `"email":"b@x"`, "b@x", false},
		{`"email":"a@x","email_verified":false`, `"email":"a@x","email_verified":true`, "", false},
	} {
		claims := func(more string) []byte { return []byte(strings.TrimSuffix(`{"sub":"7",`+more, ",") + "}") }
		who, err := FromClaims(p.Settings.URL, claims(c.token), ClaimNames(p.Settings.Claims))
		if err == nil {
			who, err = p.WithUserInfo(who, claims(c.userinfo))
		}
		if err != nil || who.Email != c.email || (who.Claims["email_verified"] == true) != c.verified {
			t.Errorf("the token says %s, the endpoint %s: %q, %v, %v", c.token, c.userinfo, who.Email, who.Claims["email_verified"], err)
		}
	}
}

func TestClaimsOutOfBoundsAreRefused(t *testing.T) {
	for name, claims := range map[string]string{
		"none":                    ``,
		"null":                    `null`,
		"a list":                  `[]`,
		"two objects":             `{"sub":"7"}{"sub":"8"}`,
		"no subject":              `{"name":"Ada"}`,
		"a subject that is none":  `{"sub":7}`,
		"an empty subject":        `{"sub":""}`,
		"a subject with a line":   `{"sub":"a\nb"}`,
		"a long subject":          `{"sub":"` + strings.Repeat("a", MaxText+1) + `"}`,
		"nested too deep":         `{"sub":"7","a":` + strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1) + `}`,
		"too many values":         `{"sub":"7","a":[` + strings.Repeat("1,", MaxValues) + `1]}`,
		"more bytes than a token": `{"sub":"7","a":"` + strings.Repeat("a", MaxToken) + `"}`,
	} {
		if i, err := FromClaims("https://issuer", []byte(claims), usual); !errors.Is(err, ErrRefused) || i.Claims != nil {
			t.Errorf("%s: %+v %v", name, i, err)
		}
	}
}

func FuzzFromClaims(f *testing.F) {
	for _, seed := range []string{`{"sub":"7","name":"Ada","groups":["a"]}`, `{"sub":"7","email":"é","email_verified":"true"}`, `{"sub":"7","groups":{"a":[{}]}}`, `[`} {
		f.Add(seed, "groups")
	}
	f.Fuzz(func(t *testing.T, claims, groups string) {
		i, err := FromClaims("https://issuer", []byte(claims), ClaimNames{Name: "name", Email: "email", Groups: groups})
		if err != nil {
			if !errors.Is(err, ErrRefused) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q", err)
			}
			return
		}
		for _, text := range []string{i.Subject, i.Name, i.Email} {
			if len(text) > MaxText || !utf8.ValidString(text) || strings.ContainsFunc(text, unprintable) {
				t.Errorf("%q", text)
			}
		}
		for _, group := range i.Claims[GroupsClaim].([]any) {
			_ = group.(string)
		}
		if left := MaxValues + 10; !bounded(i.Claims, MaxDepth+1, &left) {
			t.Error("the claims are out of bounds")
		}
	})
}
