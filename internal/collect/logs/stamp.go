package logs

import (
	"strings"
	"time"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// stamp is a point in time as a log line has it; see the Time… kinds.
type stamp struct {
	ms   int64
	kind uint8
}

// baseYear stands in for the year of stamps that have none.
const baseYear = 2000

var months = map[string]time.Month{"Jan": 1, "Feb": 2, "Mar": 3, "Apr": 4, "May": 5, "Jun": 6,
	"Jul": 7, "Aug": 8, "Sep": 9, "Oct": 10, "Nov": 11, "Dec": 12}

func date(y int, mo time.Month, d int) (int64, bool) {
	if mo < 1 || mo > 12 || d < 1 || d > 31 {
		return 0, false
	}
	return time.Date(y, mo, d, 0, 0, 0, 0, time.UTC).UnixMilli(), true
}

// num reads up to max digits and at least min.
func num(s string, min, max int) (v, n int, ok bool) {
	for n < len(s) && n < max && s[n] >= '0' && s[n] <= '9' {
		v = v*10 + int(s[n]-'0')
		n++
	}
	return v, n, n >= min
}

// clock reads HH:MM:SS with an optional fraction after '.' or ','.
func clock(s string) (ms int64, n int, ok bool) {
	if len(s) < 8 || s[2] != ':' || s[5] != ':' {
		return 0, 0, false
	}
	h, a, ok1 := num(s, 2, 2)
	m, b, ok2 := num(s[3:], 2, 2)
	sec, c, ok3 := num(s[6:], 2, 2)
	if !ok1 || !ok2 || !ok3 || a+b+c != 6 || h > 23 || m > 59 || sec > 60 {
		return 0, 0, false
	}
	ms, n = int64((h*60+m)*60+sec)*1000, 8
	if n+1 < len(s) && (s[n] == '.' || s[n] == ',') && s[n+1] >= '0' && s[n+1] <= '9' {
		n++
		scale := int64(100)
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			ms += int64(s[n]-'0') * scale
			scale /= 10
			n++
		}
	}
	if n < len(s) && isWord(s[n]) && s[n] != 'Z' {
		return 0, 0, false
	}
	if n < len(s) && s[n] == 'Z' {
		n++
	}
	return ms, n, true
}

// readStamp reads a time stamp at the start of s and returns its length.
func readStamp(s string) (stamp, int) {
	if len(s) < 8 {
		return stamp{}, 0
	}
	c := s[0]
	switch {
	case c >= '0' && c <= '9':
		if ms, n, ok := clock(s); ok {
			return stamp{ms, fact.TimeDayless}, n
		}
		return numericDate(s)
	case c >= 'A' && c <= 'Z':
		return namedDate(s)
	}
	return stamp{}, 0
}

// numericDate reads 2024-03-02 00:11:07,653, 2024-03-02T…, 2024/03/02 …,
// 06/03/2024 08:00:01 (month first), 10/03 10:00:21, 05-17 07:40:31 and
// 2024-03-24_08:40:11.
func numericDate(s string) (stamp, int) {
	a, n, ok := num(s, 2, 4)
	if !ok || n == 3 || n >= len(s) || s[n] != '-' && s[n] != '/' && s[n] != '.' {
		return stamp{}, 0
	}
	sep := s[n]
	b, m, ok := num(s[n+1:], 1, 2)
	if !ok {
		return stamp{}, 0
	}
	p := n + 1 + m
	y, mo, d := baseYear, a, b
	kind := uint8(fact.TimeYearless)
	if p < len(s) && s[p] == sep {
		e, q, ok := num(s[p+1:], 1, 4)
		if !ok {
			return stamp{}, 0
		}
		p += 1 + q
		kind = fact.TimeFull
		switch {
		case n == 4:
			y, mo, d = a, b, e
		case q == 4:
			y, mo, d = e, a, b
			if sep == '.' {
				mo, d = b, a
			}
		case q == 2:
			y, mo, d = 2000+a, b, e // 25/03/01
		default:
			return stamp{}, 0
		}
	} else if n != 2 || m != 2 || sep == '.' {
		return stamp{}, 0
	}
	day, ok := date(y, time.Month(mo), d)
	if !ok || y < 1990 || y > 2100 {
		return stamp{}, 0
	}
	rest := s[p:]
	gap := 0
	switch {
	case strings.HasPrefix(rest, " at "):
		gap = 4
	case len(rest) > 1 && (rest[0] == ' ' || rest[0] == 'T' || rest[0] == '_' || rest[0] == '-' || rest[0] == ':'):
		gap = 1
	default:
		return stamp{}, 0
	}
	ms, k, ok := clock(rest[gap:])
	if !ok {
		return stamp{}, 0
	}
	k += gap
	// a zone is skipped: clocks of one job are compared with each other
	if z := rest[k:]; len(z) >= 5 && (z[0] == '+' || z[0] == '-') {
		if _, zn, ok := num(z[1:], 2, 4); ok {
			k += 1 + zn
			if len(rest) >= k+3 && rest[k] == ':' {
				k += 3
			}
		}
	}
	return stamp{day + ms, kind}, p + k
}

// namedDate reads "Wed Jul 30 19:02:11 2025", "Tue Feb 20 18:31:09 CST 2024",
// "Jul 30 19:02:11" and "Mon 2024-04-22 06:31:07 UTC".
func namedDate(s string) (stamp, int) {
	p := 0
	if len(s) > 4 && s[3] == ' ' && months[s[:3]] == 0 {
		switch s[:3] {
		case "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun":
		default:
			return stamp{}, 0
		}
		p = 4
		if p < len(s) && s[p] >= '0' && s[p] <= '9' {
			st, n := numericDate(s[p:])
			if n == 0 {
				return stamp{}, 0
			}
			return st, p + n
		}
	}
	if len(s) < p+12 {
		return stamp{}, 0
	}
	mo := months[s[p:p+3]]
	if mo == 0 || s[p+3] != ' ' {
		return stamp{}, 0
	}
	p += 4
	if s[p] == ' ' {
		p++
	}
	d, n, ok := num(s[p:], 1, 2)
	if !ok || p+n >= len(s) || s[p+n] != ' ' {
		return stamp{}, 0
	}
	p += n + 1
	ms, n, ok := clock(s[p:])
	if !ok {
		return stamp{}, 0
	}
	p += n
	y, kind := baseYear, uint8(fact.TimeYearless)
	rest := s[p:]
	if i := strings.IndexByte(rest, ' '); i == 0 {
		q := rest[1:]
		skip := 1
		if j := strings.IndexByte(q, ' '); j > 1 && j <= 5 && q[0] >= 'A' && q[0] <= 'Z' {
			q, skip = q[j+1:], skip+j+1
		}
		if v, k, ok := num(q, 4, 4); ok && v > 1990 && v < 2100 && (k == len(q) || !isWord(q[k])) {
			y, kind, p = v, fact.TimeFull, p+skip+k
		}
	}
	day, ok := date(y, mo, d)
	if !ok {
		return stamp{}, 0
	}
	return stamp{day + ms, kind}, p
}

// glogStamp reads "E1119 14:02:07.591000" or torch's "E731 03:22:46.379096756".
func glogStamp(s string) (stamp, int) {
	if len(s) < 12 {
		return stamp{}, 0
	}
	switch s[0] {
	case 'I', 'W', 'E', 'F', 'V':
	default:
		return stamp{}, 0
	}
	v, n, ok := num(s[1:], 3, 4)
	if !ok || len(s) < n+3 || s[1+n] != ' ' {
		return stamp{}, 0
	}
	day, ok := date(baseYear, time.Month(v/100), v%100)
	if !ok {
		return stamp{}, 0
	}
	ms, k, ok := clock(s[n+2:])
	if !ok {
		return stamp{}, 0
	}
	return stamp{day + ms, fact.TimeYearless}, n + 2 + k
}
