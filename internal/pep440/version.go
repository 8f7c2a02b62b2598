// Package pep440 reads, orders and matches Python version numbers exactly as
// PEP 440 and the reference implementation (pypa/packaging) do. Versions of
// PyTorch use all of it: local tags (2.6.0+cu124), pre-releases of vendors
// (2.5.0a0+872d972e41.nv24.08) and nightly builds (2.7.0.dev20250101+cu126).
package pep440

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"

	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// maxLen bounds what is parsed: no real version comes near it.
const maxLen = 512

// Version is a parsed version. The zero Version is not valid.
type Version struct {
	epoch   num
	release []num
	preL    string // a, b, rc; "" without pre-release
	preN    num
	post    num
	dev     num
	hasPost bool
	hasDev  bool
	local   []string // lower case, separators removed
}

// num is a decimal number of any length without leading zeros: dates and
// serial numbers in versions need not fit in a machine word.
type num string

func toNum(s string) num {
	s = strings.TrimLeft(s, "0")
	if s == "" {
		return "0"
	}
	return num(s)
}

func (a num) compare(b num) int {
	if c := cmp.Compare(len(a), len(b)); c != 0 {
		return c
	}
	return cmp.Compare(a, b)
}

var versionRE = lazyre.New(`^v?(?:([0-9]+)!)?([0-9]+(?:\.[0-9]+)*)` +
	`([-_.]?(alpha|a|beta|b|preview|pre|c|rc)[-_.]?([0-9]+)?)?` +
	`(-([0-9]+)|[-_.]?(post|rev|r)[-_.]?([0-9]+)?)?` +
	`([-_.]?dev[-_.]?([0-9]+)?)?` +
	`(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?$`)

// Parse reads a version. Surrounding white space is allowed, as in the
// reference implementation.
func Parse(s string) (Version, error) {
	if len(s) > maxLen {
		return Version{}, fmt.Errorf("version of %d bytes is too long", len(s))
	}
	m := versionRE.FindStringSubmatch(lower(strings.TrimFunc(s, isSpace)))
	if m == nil {
		return Version{}, fmt.Errorf("invalid version %q", s)
	}
	v := Version{epoch: toNum(m[1])}
	for p := range strings.SplitSeq(m[2], ".") {
		v.release = append(v.release, toNum(p))
	}
	if m[3] != "" {
		switch m[4] {
		case "alpha", "a":
			v.preL = "a"
		case "beta", "b":
			v.preL = "b"
		default: // c, rc, pre, preview
			v.preL = "rc"
		}
		v.preN = toNum(m[5])
	}
	if m[6] != "" {
		v.hasPost = true
		v.post = toNum(m[7] + m[9])
	}
	if m[10] != "" {
		v.hasDev = true
		v.dev = toNum(m[11])
	}
	if m[12] != "" {
		v.local = strings.FieldsFunc(m[12], func(r rune) bool { return r == '.' || r == '-' || r == '_' })
		for i, p := range v.local {
			if isDigits(p) {
				v.local[i] = string(toNum(p))
			}
		}
	}
	return v, nil
}

// lower is strings.ToLower for ASCII alone: no other letter may become one of a version.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// isSpace is what Python's str.strip takes for white space.
func isSpace(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// String returns the normalised form.
func (v Version) String() string {
	if len(v.local) == 0 {
		return v.Public()
	}
	return v.Public() + "+" + strings.Join(v.local, ".")
}

// Public returns the normalised form without the local tag: 2.6.0 of 2.6.0+cu124.
func (v Version) Public() string {
	s := v.Base()
	if v.preL != "" {
		s += v.preL + string(v.preN)
	}
	if v.hasPost {
		s += ".post" + string(v.post)
	}
	if v.hasDev {
		s += ".dev" + string(v.dev)
	}
	return s
}

// Base returns epoch and release only: 2.5.0 of 2.5.0a0+872d972e41.nv24.08.
func (v Version) Base() string {
	s := joinNums(v.release)
	if v.epoch != "0" && v.epoch != "" {
		s = string(v.epoch) + "!" + s
	}
	return s
}

// Local returns the local tag in normalised form: cu124; "" when there is none.
func (v Version) Local() string { return strings.Join(v.local, ".") }

// Release returns the i-th number of the release (0 is the major version), 0
// when it has none, and capped at a million.
func (v Version) Release(i int) int {
	const most = 1_000_000
	if i < 0 || i >= len(v.release) {
		return 0
	}
	if len(v.release[i]) > 6 {
		return most
	}
	n := 0
	for _, c := range string(v.release[i]) {
		n = n*10 + int(c-'0')
	}
	return n
}

// IsPre reports whether the version is a pre-release or a development release.
func (v Version) IsPre() bool { return v.preL != "" || v.hasDev }

func joinNums(ns []num) string {
	var b strings.Builder
	for i, n := range ns {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(string(n))
	}
	return b.String()
}

// Compare orders two versions: -1, 0 or 1.
func Compare(a, b Version) int {
	if c := a.epoch.compare(b.epoch); c != 0 {
		return c
	}
	if c := compareRelease(a.release, b.release); c != 0 {
		return c
	}
	ar, al := a.preRank()
	br, bl := b.preRank()
	if c := cmp.Or(cmp.Compare(ar, br), cmp.Compare(al, bl)); c != 0 {
		return c
	}
	if a.preL != "" {
		if c := a.preN.compare(b.preN); c != 0 {
			return c
		}
	}
	// No post-release comes before any; no development release comes after any.
	if a.hasPost != b.hasPost {
		return boolCompare(a.hasPost)
	}
	if a.hasPost {
		if c := a.post.compare(b.post); c != 0 {
			return c
		}
	}
	if a.hasDev != b.hasDev {
		return boolCompare(!a.hasDev)
	}
	if a.hasDev {
		if c := a.dev.compare(b.dev); c != 0 {
			return c
		}
	}
	return compareLocal(a.local, b.local)
}

func boolCompare(aWins bool) int {
	if aWins {
		return 1
	}
	return -1
}

// preRank orders 1.0.dev1 before 1.0a1 before 1.0.
func (v Version) preRank() (int, string) {
	switch {
	case v.preL != "":
		return 1, v.preL
	case !v.hasPost && v.hasDev:
		return 0, ""
	}
	return 2, ""
}

func compareRelease(a, b []num) int {
	for i := range max(len(a), len(b)) {
		x, y := num("0"), num("0")
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if c := x.compare(y); c != 0 {
			return c
		}
	}
	return 0
}

// compareLocal orders parts one by one: numbers by value and after words, a
// shorter tag before a longer one with the same start.
func compareLocal(a, b []string) int {
	for i := range min(len(a), len(b)) {
		an, bn := isDigits(a[i]), isDigits(b[i])
		var c int
		switch {
		case an && bn:
			c = num(a[i]).compare(num(b[i]))
		case an != bn:
			c = boolCompare(an)
		default:
			c = cmp.Compare(a[i], b[i])
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}
