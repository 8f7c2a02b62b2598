package mask

import "strings"

// Parts of a name that make its value a secret.
var secretParts = []string{
	"token", "secret", "password", "passwd", "passphrase", "pwd", "apikey", "jwt",
	"credential", "credentials", "auth", "authorization", "cookie", "signature", "sig",
}

// Parts that, right before "key", make its value a secret.
var secretKeys = []string{"api", "access", "private", "secret", "auth", "encryption", "signing", "license", "ssh", "account", "storage", "wandb", "hf", "openai", "anthropic", "comet", "ngc"}

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
		prev = part
	}
	return secret && !about || prev == "pass" && (strings.HasSuffix(name, "_PASS") || strings.HasPrefix(name, "--")) // DB_PASS, --redis-pass; a forward_pass is none
}

// mayBeSecret reports whether name has the beginning of one of the parts that
// SecretName looks for. Every word of a script is asked, and nearly all end here.
func mayBeSecret(name string) bool {
	for i := 0; i+3 <= len(name); i++ {
		switch name[i] | 0x20 {
		case 't', 's', 'p', 'k', 'j', 'c', 'a':
		default:
			continue
		}
		switch uint32(name[i]|0x20)<<16 | uint32(name[i+1]|0x20)<<8 | uint32(name[i+2]|0x20) {
		case 't'<<16 | 'o'<<8 | 'k', 's'<<16 | 'e'<<8 | 'c', 's'<<16 | 'i'<<8 | 'g', 'p'<<16 | 'a'<<8 | 's', 'p'<<16 | 'w'<<8 | 'd',
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
// characters that follow.
var tokenShapes = []struct {
	prefix string
	least  int
}{
	{"hf_", 16}, {"api_org_", 16},
	{"ghp_", 16}, {"gho_", 16}, {"ghu_", 16}, {"ghs_", 16}, {"ghr_", 16}, {"github_pat_", 16},
	{"glpat-", 12}, {"gldt-", 12}, {"glrt-", 12},
	{"xoxb-", 8}, {"xoxp-", 8}, {"xoxa-", 8}, {"xoxr-", 8}, {"xoxs-", 8}, {"xapp-", 8},
	{"AKIA", 16}, {"ASIA", 16}, {"AIza", 30}, {"ya29.", 16},
	{"sk-", 20}, {"sk_live_", 12}, {"rk_live_", 12}, {"npm_", 20}, {"pypi-", 20}, {"dop_v1_", 20}, {"nvapi-", 16},
	{"wandb_v1_", 16}, {"local-", 40}, // keys of wandb
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
		if len(word) >= len(t.prefix)+t.least && strings.HasPrefix(word, t.prefix) {
			return len(t.prefix)
		}
	}
	return -1
}
