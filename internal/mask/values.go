package mask

import "strings"

// valueAfter finds the value that belongs to the name which ends at j, when the
// name looks like a secret's: after "=", ":", or a blank when the name is a long option.
func valueAfter(s string, j int, name string) (from, to int) {
	i := j - len(name)
	kind := kindOf(s, i, name)
	if kind == harmless {
		return 0, 0
	}
	if i >= 2 && s[i-1] == '{' && s[i-2] == '$' {
		return defaultOf(s, j)
	}
	sep, k := separator(s, j, strings.HasPrefix(name, "--"))
	switch {
	case sep == none:
		return 0, 0
	case sep == blank && !strings.HasPrefix(name, "-"): // .netrc, aws configure set
		if kind != secret || k+16 > len(s) || s[k] == '/' || strings.IndexByte(s[k:k+16], ' ') >= 0 || !generated(s[k:]) {
			return 0, 0
		}
	case sep == colon && prose(s[k:]): // "--token: invalid int value: 'x'"
		return complaint(s, k)
	case sep == blank && prose(s[k:]): // "--token is required"
		return 0, 0
	case sep == quotedColon && (fileName(name) || k < len(s) && (s[k] == '{' || s[k] == '[')): // what is inside has names of its own
		return 0, 0
	case sep == colon && !namesValue(s, i, k, name):
		return 0, 0
	case sep == colon && kind == short: // the result of a test: "PASS: test_x"
		return 0, 0
	}
	if k >= len(s) {
		return 0, 0
	}
	// "Authorization: Bearer xyz": the scheme is not the secret.
	if e := wordEnd(s, k); e > k && foldAny(s[k:e], "bearer", "basic", "token", "digest") {
		if n := skipBlanks(s, e); n > e && n < len(s) {
			k = n
		}
	}
	from, to = literal(s, k)
	if from < to && kind == short && harmlessShort(s[from:to]) {
		return 0, 0
	}
	if from < to && (sameName(s[from:to], name) || strings.HasPrefix(name, "-") && plainOption(name, s[from:to])) {
		return 0, 0
	}
	return from, to
}

// Kinds of names.
const (
	harmless = iota
	secret
	short // says little by itself: PASS=x is a secret, PASS=3 the result of a test
)

func kindOf(s string, i int, name string) int {
	switch name {
	case "--pat", "--key", "--pw", "-pat", "-pw":
		return secret
	case "pass", "pw", "psw", "PASS", "PW", "PSW", "Pass":
		return short
	case "sig": // of a shared access URL; elsewhere the name of a signal
		if i > 0 && (s[i-1] == '?' || s[i-1] == '&') {
			return secret
		}
		return harmless
	}
	if SecretName(name) {
		return secret
	}
	return harmless
}

// What stands between a name and its value.
const (
	none = iota
	equals
	colon
	quotedColon // "name": value
	blank
)

// separator finds where the value of the name that ends at j starts.
func separator(s string, j int, option bool) (sep, k int) {
	k = j
	if k+1 < len(s) && s[k] == '\\' && (s[k+1] == '"' || s[k+1] == '\'') { // JSON inside of a string
		k++
	}
	inQuotes := k < len(s) && (s[k] == '"' || s[k] == '\'')
	if inQuotes {
		k++
	}
	at := k
	k = skipBlanks(s, k)
	switch {
	case k >= len(s):
		return none, k
	case s[k] == '=':
		return equals, skipBlanks(s, k+1)
	case s[k] == ':' && inQuotes:
		return quotedColon, skipBlanks(s, k+1)
	case s[k] == ':':
		return colon, skipBlanks(s, k+1)
	case s[k] == ',' && inQuotes && option: // ['t.py', '--token', 'x']
		if k = skipBlanks(s, k+1); k < len(s) && (s[k] == '"' || s[k] == '\'') {
			return equals, k
		}
	case k > at && inQuotes: // Option '--token' requires an argument
	case k > at && strings.HasPrefix(s[k:], "--"): // the next option
	case k > at:
		return blank, k
	}
	return none, k
}

// namesValue reports that what follows the colon at the end of a name, at k, is
// its value and not a message about it.
func namesValue(s string, i, k int, name string) bool {
	// "/etc/passwd: not a wheel" and "token.out: permission denied" are about files.
	if i > 0 && s[i-1] == '/' || fileName(name) {
		return false
	}
	if looksRandom(s[k:]) {
		return true
	}
	// "unexpected token: foo" is prose, "slurm_auth_verify: …" the name of a function.
	if foldAny(name, "token", "auth", "secret", "credential", "credentials", "signature", "cookie") {
		return ownLine(s, i, k)
	}
	return endsSecret(name)
}

// ownLine reports "token: x1" on a line of its own, as YAML has it.
func ownLine(s string, i, k int) bool {
	for i > 0 && (s[i-1] == ' ' || s[i-1] == '\t' || s[i-1] == '-') {
		i--
	}
	if i > 0 && s[i-1] != '\n' {
		return false
	}
	end := min(len(s), k+200)
	if n := strings.IndexByte(s[k:end], '\n'); n >= 0 {
		end = k + n
	}
	v := strings.TrimSpace(s[k:end])
	return len(v) >= 6 && strings.ContainsAny(v, "0123456789") && !strings.ContainsAny(v, " \t./:[({")
}

// prose reports whether s begins with a word of messages about an option or a variable.
func prose(s string) bool {
	if e := wordEnd(s, 0); e < len(s) && s[e] == ' ' || e == len(s) {
		switch strings.ToLower(s[:min(e, 12)]) {
		case "invalid", "expected", "ignored", "ambiguous", "unrecognized", "unknown", "conflicting", "missing", "required", "requires",
			"unbound", "parameter", "readonly", "undefined", "command", "permission", "incorrect", "wrong", "expired", "rejected", "denied",
			"is", "are", "was", "were", "has", "have", "must", "should", "may", "can", "cannot", "can't", "needs", "not", "no", "or", "and",
			"to", "for", "in", "on", "with", "from", "the", "this", "that", "if", "option", "argument", "flag", "instead", "failed", "error", "error:":
			return true
		}
	}
	return false
}

// complaint returns what a message about a secret option at k quotes of it:
// argument --token: invalid int value: 'x'.
func complaint(s string, k int) (from, to int) {
	line := s[k:min(len(s), k+200)]
	if n := strings.IndexByte(line, '\n'); n >= 0 {
		line = line[:n]
	}
	for _, before := range []string{"value: '", "choice: '", "value '"} {
		if n := strings.Index(line, before); n >= 0 {
			return quoted(s, k+n+len(before)-1)
		}
	}
	return 0, 0
}

// literal returns the value at k, without its quotes, or nothing when it is none
// that anybody wrote down: a variable, a command, None.
func literal(s string, k int) (from, to int) {
	from, to = k, k
	switch {
	case s[k] == '"' || s[k] == '\'':
		from, to = quoted(s, k)
	case s[k] == '\\' && k+1 < len(s) && (s[k+1] == '"' || s[k+1] == '\''):
		from = k + 2
		for to = from; to < len(s) && s[to] != '\\' && s[to] != s[k+1] && s[to] != '\n'; to++ {
		}
	default:
		to = valueEnd(s, k)
	}
	if from >= to || reference(s[from:to]) || nothing(s[from:to]) {
		return 0, 0
	}
	if f, t, ok := expansion(s, from, to); ok {
		return f, t
	}
	return from, to
}

// reference reports a value that says where the secret is: $TOKEN, $(cat f), os.environ[….
func reference(v string) bool {
	v = v[:min(len(v), 300)]
	switch {
	case v[0] == '`', strings.HasPrefix(v, "$("):
		return true
	case v[0] == '$':
		return len(v) > 1 && isName(v[1:])
	case v[0] == '{' && isName(strings.TrimRight(v[1:], "}")): // a template: {token}
		return true
	}
	for _, p := range []string{"os.environ", "os.getenv", "getpass.", "self.", "args.", "kwargs.", "config.", "cfg."} {
		if strings.HasPrefix(v, p) {
			return true
		}
	}
	return false
}

// expansion returns the default inside of ${NAME:-default} that s[from:to] is;
// ok says that it is such an expansion, with or without a default.
func expansion(s string, from, to int) (f, t int, ok bool) {
	if !strings.HasPrefix(s[from:to], "${") {
		return 0, 0, false
	}
	n := from + 2
	for n < to && (isWord(s[n]) && s[n] != '-' && s[n] != '.') {
		n++
	}
	f, t = defaultOf(s, n)
	return f, t, true
}

// defaultOf returns the default of the expansion whose name ends at j.
func defaultOf(s string, j int) (from, to int) {
	k := j
	if k < len(s) && s[k] == ':' {
		k++
	}
	if k >= len(s) || s[k] != '-' && s[k] != '=' {
		return 0, 0
	}
	k++
	for k < len(s) && (s[k] == '"' || s[k] == '\'') {
		k++
	}
	e := valueEnd(s, k)
	if e <= k || s[k] == '$' || nothing(s[k:e]) {
		return 0, 0
	}
	return k, e
}

// nothing reports the words for no value, and the switches of options that only
// sound like a secret: use_auth_token=True.
func nothing(v string) bool {
	return foldAny(v, "none", "null", "nil", "true", "false", "unset", "...", "xxx", "%s")
}

// sameName reports a value that repeats the name: the metavar of a usage line,
// the argument of a call (token=token).
func sameName(v, name string) bool {
	v, name = strings.ReplaceAll(v, "-", "_"), strings.ReplaceAll(strings.TrimLeft(name, "-"), "-", "_")
	if strings.EqualFold(v, name) {
		return true
	}
	return v == strings.ToUpper(v) && foldAny(v, name[strings.LastIndexByte(name, '_')+1:])
}

// plainOption reports a value of --key and the like that is no secret: a path, a
// pattern, a column of sort.
func plainOption(name, v string) bool {
	if !foldAny(strings.TrimLeft(name, "-"), "key", "pat") {
		return false
	}
	return strings.ContainsAny(v, "/*?[~") || fileName(v) || strings.HasSuffix(v, ".pem") || strings.HasSuffix(v, ".key") ||
		len(v) <= 6 && v[0] >= '0' && v[0] <= '9'
}

// harmlessShort reports a value of PASS or PW that counts or measures.
func harmlessShort(v string) bool {
	digits := strings.Trim(v, "0123456789.%")
	return digits == "" && (len(v) <= 4 || strings.ContainsAny(v, ".%")) || foldAny(v, "yes", "no", "ok")
}

// endsSecret reports a name whose last word is the secret one.
func endsSecret(name string) bool {
	last := ""
	for p := range parts(name) {
		last = p
	}
	return last == "key" || last == "data" || last == "pass" || SecretName(last)
}

func isName(v string) bool {
	v = strings.TrimSuffix(strings.TrimPrefix(v, "{"), "}")
	for i := range len(v) {
		if c := v[i]; !isWord(c) || c == '-' || c == '.' {
			return false
		}
	}
	return v != ""
}
