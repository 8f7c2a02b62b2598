package mask

import "strings"

// privateKey returns what the header of a private key, whose BEGIN ends at j,
// opens: up to its END, or all that is left.
func privateKey(s string, j int) (from, to int) {
	// The bound keeps a text full of headers linear.
	head := s[j:min(j+64, len(s))]
	k := strings.Index(head, "-----")
	if k < 0 || !strings.Contains(head[:k], "PRIVATE KEY") {
		return 0, 0
	}
	from = j + k + len("-----")
	for from < len(s) && (s[from] == '\r' || s[from] == '\n') {
		from++
	}
	if strings.HasPrefix(s[from:], "\\n") { // in JSON
		from += 2
	}
	end := strings.Index(s[from:], "-----END")
	if end < 0 {
		return from, len(s)
	}
	return from, from + end
}

// keyValue returns the value of the bare name "key" at s[i:j] when only a secret
// looks like it: wandb.login(key="…"), "API key: …", "?key=…".
func keyValue(s string, i, j int) (from, to int) {
	api := i >= 4 && foldAny(s[i-4:i-1], "api") && (s[i-1] == ' ' || s[i-1] == '-')
	k := j
	if k < len(s) && (s[k] == '"' || s[k] == '\'') {
		k++
	}
	k = skipBlanks(s, k)
	if k >= len(s) || s[k] != '=' && (s[k] != ':' || !api && k == j) {
		return 0, 0
	}
	for k = skipBlanks(s, k+1); k < len(s) && (s[k] == '"' || s[k] == '\''); k++ {
	}
	e := k
	for e < len(s) && (s[e] >= '0' && s[e] <= '9' || s[e] >= 'a' && s[e] <= 'f' || s[e] >= 'A' && s[e] <= 'F') {
		e++
	}
	query := i > 0 && (s[i-1] == '?' || s[i-1] == '&')
	if e-k >= 32 || (api || query) && k < len(s) && generated(s[k:]) {
		return k, valueEnd(s, k)
	}
	return 0, 0
}

// proxyUser returns the user and the password in the value of a proxy variable
// without a scheme, whose name ends at j: http_proxy=bob:x@proxy:3128.
func proxyUser(s string, j int) (from, to int) {
	k := skipBlanks(s, j)
	if k >= len(s) || s[k] != '=' && s[k] != ':' && k == j {
		return 0, 0
	}
	if s[k] == '=' || s[k] == ':' {
		k = skipBlanks(s, k+1)
	}
	if k < len(s) && (s[k] == '"' || s[k] == '\'') {
		k++
	}
	v := s[k:min(valueEnd(s, k), k+200)]
	at := strings.LastIndexByte(v, '@')
	if at < 0 || strings.Contains(v, "://") || strings.IndexByte(v[:at], ':') <= 0 {
		return 0, 0
	}
	return k, k + at
}

// webhook returns the secret part of an address that starts at i, behind its
// scheme: user and password, or the path that is the key of a chat's webhook.
func webhook(s string, i int) (from, to int) {
	for _, w := range []string{"hooks.slack.com/services/", "hooks.slack.com/workflows/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/", "api.telegram.org/bot"} {
		if strings.HasPrefix(s[i:], w) {
			return i + len(w), valueEnd(s, i)
		}
	}
	return userinfo(s, i)
}
