package pep440

import (
	"fmt"
	"strings"

	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// Specifiers is a comma separated list of clauses such as ">=2.4,!=2.5.0,<3":
// all of them must hold. The empty list holds for every version.
type Specifiers []Specifier

// Specifier is one clause.
type Specifier struct {
	op   string // ==, !=, <=, >=, <, >, ~=, ===
	text string // the version as written, for ===
	v    Version
	wild bool // ==2.4.*
}

var (
	opRE       = lazyre.New(`^(===|==|~=|!=|<=|>=|<|>)`)
	noLocalRE  = lazyre.New(`^[^+]*$`)
	wildRE     = lazyre.New(`^v?(?:[0-9]+!)?[0-9]+(?:\.[0-9]+)*$`)
	tildeRE    = lazyre.New(`^v?(?:[0-9]+!)?[0-9]+(?:\.[0-9]+)+`)
	nonSpaceRE = lazyre.New(`^[^\s;)]*$`)
)

// ParseSpecifiers reads a list of clauses.
func ParseSpecifiers(s string) (Specifiers, error) {
	if len(s) > 16*maxLen {
		return nil, fmt.Errorf("specifier of %d bytes is too long", len(s))
	}
	var out Specifiers
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimFunc(part, isSpace)
		if part == "" {
			continue
		}
		sp, err := parseSpecifier(part)
		if err != nil {
			return nil, err
		}
		out = append(out, sp)
	}
	return out, nil
}

func parseSpecifier(part string) (Specifier, error) {
	bad := fmt.Errorf("invalid specifier %q", part)
	op := opRE.FindString(part)
	if op == "" {
		return Specifier{}, bad
	}
	text := strings.TrimFunc(part[len(op):], isSpace)
	sp := Specifier{op: op, text: text}
	if op == "===" {
		if !nonSpaceRE.MatchString(text) {
			return Specifier{}, bad
		}
		return sp, nil
	}
	low := lower(text)
	if base, ok := strings.CutSuffix(low, ".*"); ok {
		if op != "==" && op != "!=" || !wildRE.MatchString(base) {
			return Specifier{}, bad
		}
		low, sp.wild = base, true
	}
	if op != "==" && op != "!=" && !noLocalRE.MatchString(low) {
		return Specifier{}, bad
	}
	if op == "~=" && !tildeRE.MatchString(low) {
		return Specifier{}, bad
	}
	v, err := Parse(low)
	if err != nil {
		return Specifier{}, bad
	}
	sp.v = v
	return sp, nil
}

// Match reports whether v satisfies every clause. Pre-releases are not
// excluded: that is a question of choosing a candidate, not of an installed
// version, and pip checks installed versions the same way.
func (ss Specifiers) Match(v Version) bool {
	for _, s := range ss {
		if !s.Match(v) {
			return false
		}
	}
	return true
}

// Match reports whether v satisfies the clause.
func (s Specifier) Match(v Version) bool {
	switch s.op {
	case "===":
		return lower(v.String()) == lower(s.text)
	case "==":
		return s.equal(v)
	case "!=":
		return !s.equal(v)
	case "<=":
		return Compare(v.public(), s.v) <= 0
	case ">=":
		return Compare(v.public(), s.v) >= 0
	case "~=":
		return Compare(v.public(), s.v) >= 0 && hasPrefix(v, s.v.epoch, s.v.release[:len(s.v.release)-1])
	case "<":
		// 3.1.dev0 is no answer to <3.1, unless a pre-release was asked for.
		bound := s.v
		if !bound.IsPre() {
			bound.hasDev, bound.dev, bound.local = true, "0", nil
		}
		return Compare(v, bound) < 0
	case ">":
		// Neither 3.1+local nor 3.1.post0 is an answer to >3.1.
		post := !s.v.hasPost && !s.v.hasDev && v.hasPost && sameBase(v, s.v) &&
			v.preL == s.v.preL && v.preN == s.v.preN
		return Compare(v.public(), s.v) > 0 && !post
	}
	return false
}

func (s Specifier) equal(v Version) bool {
	if s.wild {
		return hasPrefix(v, s.v.epoch, s.v.release)
	}
	if len(s.v.local) == 0 {
		v = v.public()
	}
	return Compare(v, s.v) == 0
}

// hasPrefix reports whether the release of v, filled up with zeros, starts with the given numbers.
func hasPrefix(v Version, epoch num, release []num) bool {
	if v.epoch != epoch {
		return false
	}
	for i, n := range release {
		x := num("0")
		if i < len(v.release) {
			x = v.release[i]
		}
		if x != n {
			return false
		}
	}
	return true
}

func sameBase(a, b Version) bool {
	return a.epoch == b.epoch && compareRelease(a.release, b.release) == 0
}

func (v Version) public() Version { v.local = nil; return v }
