// Package mask hides secrets in values and free text before anything of them
// enters a fact, a report or a bundle. It prefers to hide too much of what
// looks like a secret over showing one, but leaves alone what reports are made
// of: paths, versions, commit ids, rank numbers.
//
// All functions run in time linear in their input.
package mask

import "strings"

// Hidden stands in for what was masked.
const Hidden = "***"

// Value masks the value of an environment variable: wholly when the name says
// that it is a secret, else as Text does.
func Value(name, value string) string {
	if value != "" && SecretName(name) {
		return Hidden
	}
	return Text(value)
}

// Text masks secrets inside free text: user information in URLs, values of
// secret-looking names (password=…, "token": "…", --api-key …), authorization
// headers, private key blocks and tokens of well-known shape.
func Text(s string) string {
	var out []byte // nil until something is masked
	done := 0      // s[:done] is in out
	each(s, func(from, to int) {
		out = append(out, s[done:from]...)
		out = append(out, Hidden...)
		done = to
	})
	if out == nil {
		return s
	}
	return string(append(out, s[done:]...))
}

// Secrets returns what Text hides in s, in order: for a caller that has the
// same words out of their context, where nothing tells that they are secret.
func Secrets(s string) []string {
	var out []string
	each(s, func(from, to int) { out = append(out, s[from:to]) })
	return out
}

// each calls hide for the ranges of s to hide, in order.
func each(s string, hide func(from, to int)) {
	var cmd command
	for i := 0; i < len(s); {
		if !isWord(s[i]) {
			if c := s[i]; c == '\n' || c == ';' || c == '|' || c == '&' {
				cmd.end(s, i)
			}
			i++
			continue
		}
		j := i + 1
		for j < len(s) && isWord(s[j]) {
			j++
		}
		word := s[i:j]
		from, to := secretAt(s, i, j, word)
		if f, t := cmd.at(s, i, j, word); to <= from {
			from, to = f, t
		}
		switch {
		case to > from:
			if s[from:to] != Hidden {
				hide(from, to)
			}
			i = to
		default:
			i = j
		}
	}
}

// secretAt returns the range of s to hide on account of the word s[i:j], or an
// empty range. The range never starts before i.
func secretAt(s string, i, j int, word string) (from, to int) {
	if strings.HasPrefix(s[j:], "://") {
		return webhook(s, j+3)
	}
	if strings.HasPrefix(s[j:], ":/") && foldAny(word, "http", "https") { // a URL that was cleaned like a path
		return userinfo(s, j+2)
	}
	if n := tokenShape(word); n >= 0 {
		return i + n, j
	}
	if strings.HasSuffix(word, "-----BEGIN") {
		return privateKey(s, j)
	}
	if foldAny(word, "bearer", "basic") {
		if k := skipBlanks(s, j); k > j {
			if e := credentialEnd(s, k); e-k >= 12 && mixed(s[k:e]) && !(foldAny(word, "basic") && strings.ContainsAny(s[k:e], "._-~")) { // which is base64
				return k, e
			}
		}
		return 0, 0
	}
	if foldAny(word, "key") { // a name that says little, a value that says it all
		if from, to := keyValue(s, i, j); to > from {
			return from, to
		}
	}
	if len(word) >= 5 && foldAny(word[len(word)-5:], "proxy") {
		return proxyUser(s, j)
	}
	return valueAfter(s, j, word)
}

// userinfo finds user:password@ in the authority that starts at i.
func userinfo(s string, i int) (from, to int) {
	at := -1
	for k := i; k < len(s); k++ {
		switch c := s[k]; {
		case c == '@':
			at = k
		case c == '/' || c == '?' || c == '#' || c <= ' ' || c == '"' || c == '\'' || c == '<' || c == '>':
			k = len(s)
		}
	}
	if at < 0 || s[i:at] == "git" {
		return 0, 0
	}
	return i, at
}

// fileName reports a name with an ending of logs, scripts and listings.
func fileName(name string) bool {
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "log", "out", "err", "txt", "sh", "py", "json", "yaml", "yml", "toml", "sbatch", "slurm", "gz", "xz", "zst", "whl", "sif", "sqsh":
		return strings.IndexByte(name, '.') > 0
	}
	return false
}

// quoted returns what is between the quotes that open at k.
func quoted(s string, k int) (from, to int) {
	e := k + 1
	for e < len(s) && s[e] != s[k] && s[e] != '\n' {
		if s[e] == '\\' && e+1 < len(s) && s[e+1] != '\n' {
			e++
		}
		e++
	}
	return k + 1, min(e, len(s))
}

func valueEnd(s string, k int) int {
	for k < len(s) && s[k] > ' ' && !strings.ContainsRune("\"'&,;<>)}]", rune(s[k])) {
		k++
	}
	return k
}

func credentialEnd(s string, k int) int {
	for k < len(s) && (isWord(s[k]) || strings.IndexByte("~+/=", s[k]) >= 0) {
		k++
	}
	return k
}

// mixed reports letters of both cases, or digits, as credentials have them and
// words of prose do not: "basic configuration".
func mixed(s string) bool {
	upper, lower := false, false
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			return true
		case c >= 'A' && c <= 'Z':
			upper = true
		case c >= 'a' && c <= 'z':
			lower = true
		}
	}
	return upper && lower
}

func wordEnd(s string, k int) int {
	for k < len(s) && isWord(s[k]) {
		k++
	}
	return k
}

func skipBlanks(s string, k int) int {
	for k < len(s) && (s[k] == ' ' || s[k] == '\t') {
		k++
	}
	return k
}

// looksRandom reports whether s begins with what may be a generated secret
// rather than a word.
func looksRandom(s string) bool {
	s = s[:min(len(s), 64)] // a bound keeps Text linear
	s = s[:valueEnd(s, 0)]
	if len(s) < 12 {
		return false
	}
	for i := 0; i < len(s); i++ {
		if s[i] >= '0' && s[i] <= '9' {
			return true
		}
	}
	return false
}

// generated reports whether s begins with letters and digits as only a
// generated secret has them.
func generated(s string) bool {
	s = s[:min(len(s), 128)]
	s = s[:valueEnd(s, 0)]
	letters := 0
	for i := range len(s) {
		if c := s[i]; c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			letters++
		} else if strings.IndexByte(".:([{<", c) >= 0 || c == '=' && strings.Trim(s[i:], "=") != "" {
			return false
		}
	}
	return len(s) >= 16 && letters > 0 && looksRandom(s)
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
}

func foldAny(s string, words ...string) bool {
	for _, w := range words {
		if len(w) == len(s) && strings.EqualFold(w, s) {
			return true
		}
	}
	return false
}
