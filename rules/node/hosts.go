package node

import (
	"strconv"
	"strings"
)

// maxHosts bounds what a hostile node list may expand to.
const maxHosts = 1 << 16

// inHostList reports whether a host is in a Slurm node list such as
// "gpu[01-04,7],login1". ok is false for lists that it does not understand.
func inHostList(list, host string) (in, ok bool) {
	host, _, _ = strings.Cut(host, ".")
	n := 0
	for _, part := range splitList(list) {
		open := strings.IndexByte(part, '[')
		if open < 0 {
			p, _, _ := strings.Cut(part, ".")
			if p == host {
				return true, true
			}
			continue
		}
		prefix, rest := part[:open], part[open+1:]
		shut := strings.IndexByte(rest, ']')
		if shut < 0 || strings.ContainsRune(rest[shut+1:], '[') {
			return false, false
		}
		suffix, _, _ := strings.Cut(rest[shut+1:], ".")
		mid, fits := strings.CutPrefix(host, prefix)
		if fits {
			mid, fits = strings.CutSuffix(mid, suffix)
		}
		for _, r := range strings.Split(rest[:shut], ",") {
			if n++; n > maxHosts {
				return false, false
			}
			lo, hi, isRange := strings.Cut(r, "-")
			if !isRange {
				hi = lo
			}
			a, err1 := strconv.Atoi(lo)
			b, err2 := strconv.Atoi(hi)
			if err1 != nil || err2 != nil {
				return false, false
			}
			if v, err := strconv.Atoi(mid); fits && err == nil && v >= a && v <= b && (len(mid) == len(lo) || lo[0] != '0' && mid[0] != '0') {
				return true, true
			}
		}
	}
	return false, true
}

// splitList splits at commas outside of brackets.
func splitList(s string) []string {
	var out []string
	depth, from := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '[':
			depth++
		case ']':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, s[from:i])
				from = i + 1
			}
		}
	}
	return append(out, s[from:])
}
