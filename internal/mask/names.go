package mask

import (
	"slices"
	"strings"
)

// Parts of a name that make its value a secret.
var secretParts = []string{
	"token", "secret", "password", "passwd", "passphrase", "pwd", "apikey", "jwt",
	"credential", "credentials", "auth", "authorization", "cookie", "signature",
	"authtoken", "accesstoken", "apitoken", "hftoken", "csrftoken", "bearertoken", "secretkey", "accesskey", "privatekey",
	"sshpass", "dbpass", "mypass", "userpass", "rootpass", "smtppass", "ftppass",
}

// Parts that, right before "key", make its value a secret.
var secretKeys = []string{"api", "access", "private", "secret", "auth", "encryption", "signing", "license", "ssh", "account", "storage", "wandb", "hf", "openai", "anthropic", "comet", "ngc"}

// Parts that, right before "pat", make its value a secret: a personal access token.
var patOwners = []string{"gh", "github", "gitlab", "git", "azure", "ado", "ext", "devops", "hf"}

// Parts that say that the value is about a secret or is another kind of token.
var harmlessParts = []string{
	"file", "path", "dir", "sock", "id", "ids", "type", "len", "length", "count", "size", "num", "url", "uri", "host",
	"eos", "bos", "pad", "unk", "sep", "cls", "special", "image", "method",
}

// SecretName reports whether a variable, option or key of that name holds a secret.
func SecretName(name string) bool {
	if len(name) > 256 {
		name = name[len(name)-256:]
	}
	if name == "PW" || name == "PASS" {
		return true
	}
	if !mayBeSecret(name) || name == "PWD" || name == "OLDPWD" { // working directories
		return false
	}
	secret, prev := false, ""
	about := false
	for part := range parts(name) {
		if part == "user" { // TOKEN_USER is a name, USER_PASSWORD a password
			about = true
			continue
		}
		for _, h := range harmlessParts {
			if part == h {
				return false
			}
		}
		about = about && part != "password" && part != "passwd" && part != "passphrase"
		for _, p := range secretParts {
			if part == p {
				secret = true
			}
		}
		if strings.HasSuffix(part, "password") { // PGPASSWORD
			secret = true
		}
		if part == "key" {
			for _, k := range secretKeys {
				if prev == k {
					secret = true
				}
			}
		}
		if part == "pat" && slices.Contains(patOwners, prev) || part == "data" && prev == "key" { // GITHUB_PAT, client-key-data
			secret = true
		}
		prev = part
	}
	return secret && !about || prev == "pw" && strings.HasSuffix(name, "_PW") || prev == "pass" && (strings.HasSuffix(name, "_PASS") || strings.HasPrefix(name, "--")) // DB_PASS, --redis-pass; a forward_pass is none
}

// mayBeSecret reports whether name has the beginning of one of the parts that
// SecretName looks for. Every word of a script is asked, and nearly all end here.
func mayBeSecret(name string) bool {
	if strings.HasSuffix(name, "_PW") {
		return true
	}
	for i := 0; i+3 <= len(name); i++ {
		switch name[i] | 0x20 {
		case 't', 's', 'p', 'k', 'j', 'c', 'a':
		default:
			continue
		}
		switch uint32(name[i]|0x20)<<16 | uint32(name[i+1]|0x20)<<8 | uint32(name[i+2]|0x20) {
		case 'p'<<16 | 'a'<<8 | 't', 't'<<16 | 'o'<<8 | 'k', 's'<<16 | 'e'<<8 | 'c', 's'<<16 | 'i'<<8 | 'g', 'p'<<16 | 'a'<<8 | 's', 'p'<<16 | 'w'<<8 | 'd',
			'k'<<16 | 'e'<<8 | 'y', 'j'<<16 | 'w'<<8 | 't', 'c'<<16 | 'r'<<8 | 'e', 'c'<<16 | 'o'<<8 | 'o', 'a'<<16 | 'u'<<8 | 't', 'a'<<16 | 'p'<<8 | 'i':
			return true
		}
	}
	return false
}

// parts yields the words of a name in lower case: X-Amz-Signature, WANDB_API_KEY, accessToken.
func parts(name string) func(func(string) bool) {
	return func(yield func(string) bool) {
		start := 0
		emit := func(end int) bool {
			if end <= start {
				return true
			}
			return yield(strings.ToLower(name[start:end]))
		}
		for i := 0; i < len(name); i++ {
			c := name[i]
			switch {
			case c == '_' || c == '-' || c == '.':
				if !emit(i) {
					return
				}
				start = i + 1
			case i > start && upper(c) && !upper(name[i-1]):
				if !emit(i) {
					return
				}
				start = i
			}
		}
		emit(len(name))
	}
}

func upper(c byte) bool { return c >= 'A' && c <= 'Z' }

// tokenShapes are prefixes of well-known credentials with the least number of
// characters that follow. Behind a prefix that other names begin with too come
// letters and digits only: hf_hub_download_with_retry is a function.
var tokenShapes = []struct {
	prefix string
	least  int
	plain  bool
}{
	{"hf_", 16, true}, {"api_org_", 16, true},
	{"ghp_", 16, true}, {"gho_", 16, true}, {"ghu_", 16, true}, {"ghs_", 16, true}, {"ghr_", 16, true}, {"github_pat_", 16, false},
	{"glpat-", 12, false}, {"gldt-", 12, false}, {"glrt-", 12, false},
	{"xoxb-", 8, false}, {"xoxp-", 8, false}, {"xoxa-", 8, false}, {"xoxr-", 8, false}, {"xoxs-", 8, false}, {"xapp-", 8, false},
	{"AKIA", 16, true}, {"ASIA", 16, true}, {"AIza", 30, false}, {"ya29.", 16, false},
	{"sk-", 20, false}, {"sk_live_", 12, true}, {"rk_live_", 12, true}, {"npm_", 20, true}, {"pypi-", 20, false}, {"dop_v1_", 20, true}, {"nvapi-", 16, false},
	{"wandb_v1_", 16, false}, {"local-", 40, false}, // keys of wandb
}

// tokenShape reports how many leading characters of a credential may be shown,
// -1 when word is none.
func tokenShape(word string) int {
	if len(word) < 12 {
		return -1
	}
	if strings.HasPrefix(word, "eyJ") && len(word) >= 30 && strings.Count(word, ".") >= 2 { // JSON web token
		return 3
	}
	for _, t := range tokenShapes {
		if n := len(t.prefix); len(word) >= n+t.least && strings.HasPrefix(word, t.prefix) {
			if t.plain && strings.ContainsAny(word[n:n+t.least], "_-.") || !t.plain && !strings.ContainsAny(word[n:], "0123456789") {
				continue
			}
			return n
		}
	}
	return -1
}
