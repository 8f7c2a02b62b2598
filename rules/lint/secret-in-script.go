package lint

import (
	"bytes"
	"strings"

	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var _ = Checks.Add("secret-in-script", func(c *Ctx) {
	s := c.S
	for n := 1; n <= s.NumLines && n < 100000 && len(c.out) < 20; n++ {
		a, b, _ := s.LineRange(n)
		l := s.Src[a:min(b, a+4096)]
		if !longToken(l) {
			continue
		}
		low := bytes.ToLower(l)
		for _, x := range secretShapes {
			if !bytes.Contains(low, []byte(x.has)) {
				continue
			}
			m := x.re.FindSubmatchIndex(l)
			if m == nil {
				continue
			}
			tok := string(l[m[2]:m[3]])
			if fake(tok) || x.has == "wandb" && commitBefore(low[m[0]:m[2]]) || x.has == "wandb_v1_" && !mixed(tok[len(x.has):]) {
				continue
			}
			h := c.Hit(at(n, m[2]+1), "mask", tok[:4]+"…")
			h.Evidence[0].Excerpt = ""
			break
		}
	}
})

// secretShapes are the forms of tokens; has is a part of each in small letters.
var secretShapes = []struct {
	has string
	re  *lazyre.Regexp
}{
	{"wandb_api_key", lazyre.New(`(?i)WANDB_API_KEY["']?\s*[=:]\s*["']?([0-9a-f]{40})\b`)},
	{"wandb", lazyre.New(`(?i)wandb[^@]{0,60}[ ="'(,]([0-9a-f]{40})\b`)},
	{"wandb", lazyre.New(`(?i)wandb\s+login\s+(?:--relogin\s+|--\S+\s+)*["']?([0-9a-f]{40})\b`)},
	{"wandb_v1_", lazyre.New(`\b(wandb_v1_[A-Za-z0-9_]{32,})`)},
	{"hf_", lazyre.New(`\b(hf_[A-Za-z0-9]{30,})\b`)},
	{"akia", lazyre.New(`\b(AKIA[0-9A-Z]{16})\b`)},
	{"gh", lazyre.New(`\b(gh[pousr]_[A-Za-z0-9]{36,})\b`)},
	{"github_pat_", lazyre.New(`\b(github_pat_[A-Za-z0-9_]{40,})\b`)},
	{"sk-", lazyre.New(`\b(sk-[A-Za-z0-9_-]{32,})`)},
	{"xox", lazyre.New(`\b(xox[bpa]-[A-Za-z0-9-]{20,})`)},
	{"aws_secret", lazyre.New(`(?i)AWS_SECRET_ACCESS_KEY=["']?([A-Za-z0-9/+]{40})\b`)},
	{"key=", lazyre.New(`(?i)(?:COMET|NEPTUNE|CLEARML|MLFLOW|OPENAI|ANTHROPIC|HF|HUGGING_FACE_HUB|HUGGINGFACE)_?(?:API)?_?KEY=["']?([A-Za-z0-9_\-]{24,})\b`)},
	{"token=", lazyre.New(`(?i)(?:COMET|NEPTUNE|CLEARML|MLFLOW|OPENAI|ANTHROPIC|HF|HUGGING_FACE_HUB|HUGGINGFACE)_?(?:API)?_?TOKEN=["']?([A-Za-z0-9_\-]{24,})\b`)},
}

// longToken reports whether a line has a run of 20 characters that tokens are
// made of, with a digit in it: the patterns are slow and most lines have none.
// What follows "hf_" may be letters alone.
func longToken(l []byte) bool {
	const run = 20
	for i := 0; i+run <= len(l); {
		// A run that begins at i has its last character here: most lines are
		// decided by few looks.
		j := i + run - 1
		for j >= i && tokenChar[l[j]] {
			j--
		}
		if j >= i {
			i = j + 1
			continue
		}
		from, digit := i, false
		for ; i < len(l) && tokenChar[l[i]]; i++ {
			digit = digit || l[i] >= '0' && l[i] <= '9'
		}
		if digit || bytes.Contains(l[from:i], []byte("hf_")) {
			return true
		}
	}
	return false
}

// tokenChar is true for what tokens are made of.
var tokenChar = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '-' || c == '+'
	}
	return t
}()

// fake reports whether a token is a place to fill in: it has no mix of
// characters as generated ones have.
func fake(tok string) bool {
	low := strings.ToLower(tok)
	for _, w := range []string{"your", "xxxx", "example", "1234567890", "placeholder", "abcdef", "token", "changeme", "0000000"} {
		if strings.Contains(low, w) {
			return true
		}
	}
	seen := map[byte]bool{}
	for i := 0; i < len(tok); i++ {
		seen[tok[i]] = true
	}
	return len(seen) < 8
}

// mixed reports whether a text has digits, small and capital letters, as what
// a generator makes and unlike a name.
func mixed(s string) bool {
	return strings.ContainsAny(s, "0123456789") && strings.ToLower(s) != s && strings.ToUpper(s) != s
}

// commitBefore reports text before 40 hexadecimal digits that makes them a
// commit: --wandb_project x --commit 3f1a….
func commitBefore(low []byte) bool {
	for _, w := range []string{"commit", "checkout", "rev", "sha", "hash"} {
		if bytes.Contains(low, []byte(w)) {
			return true
		}
	}
	return false
}
