package lint

import (
	"strconv"
	"strings"
)

// Version is a Slurm release: 22.05.
type Version struct{ Major, Minor int }

// ParseVersion reads "22.05.8", "slurm 23.11.10" or "slurm-wlm 22.05.8".
func ParseVersion(s string) (Version, bool) {
	for _, f := range strings.Fields(s) {
		p := strings.SplitN(strings.TrimLeft(f, "v"), ".", 3)
		if len(p) < 2 {
			continue
		}
		a, err1 := strconv.Atoi(p[0])
		b, err2 := strconv.Atoi(p[1])
		if err1 == nil && err2 == nil && a > 0 && a < 200 && b >= 0 && b < 100 {
			return Version{a, b}, true
		}
	}
	return Version{}, false
}

// Known reports whether a version was given.
func (v Version) Known() bool { return v.Major > 0 }

// Before reports whether v is an older release than w.
func (v Version) Before(w Version) bool {
	return v.Major < w.Major || v.Major == w.Major && v.Minor < w.Minor
}

// In reports whether the release is in a range such as ">=22.05,<23.11".
func (v Version) In(r string) bool {
	for _, cond := range strings.Split(r, ",") {
		cond = strings.TrimSpace(cond)
		switch {
		case strings.HasPrefix(cond, ">="):
			if w, ok := ParseVersion(cond[2:]); !ok || v.Before(w) {
				return false
			}
		case strings.HasPrefix(cond, "<"):
			if w, ok := ParseVersion(cond[1:]); !ok || !v.Before(w) {
				return false
			}
		default:
			return false
		}
	}
	return true
}
