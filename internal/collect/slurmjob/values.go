package slurmjob

import (
	"strconv"
	"strings"
	"time"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// exitStatus reads "1:0".
func exitStatus(s string) (fact.ExitStatus, bool) {
	a, b, ok := strings.Cut(strings.TrimSpace(s), ":")
	if !ok {
		return fact.ExitStatus{}, false
	}
	code, err := strconv.Atoi(a)
	sig, err2 := strconv.Atoi(b)
	if err != nil || err2 != nil || code < 0 || sig < 0 {
		return fact.ExitStatus{}, false
	}
	return fact.ExitStatus{Code: code, Signal: sig}, true
}

// bytesOf reads sizes as Slurm prints them: 13300K, 1.50G, 12390400 (bytes). A
// second letter says of what: 4000Mn (node), 2Gc (CPU); it is returned too.
func bytesOf(s string, bare int64) (n int64, per string, ok bool) {
	s = strings.TrimSpace(s)
	if l := len(s); l > 1 && (s[l-1] == 'n' || s[l-1] == 'c') {
		s, per = s[:l-1], s[l-1:]
	}
	if s == "" || s == "?" {
		return 0, "", false
	}
	mul := bare
	if i := strings.IndexByte("KMGTP", s[len(s)-1]); i >= 0 {
		mul = 1 << (10 * (i + 1))
		s = s[:len(s)-1]
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f < 0 || f*float64(mul) > 1<<62 {
		return 0, "", false
	}
	return int64(f * float64(mul)), per, true
}

const mib = 1 << 20

// tres returns one amount of cpu=2,mem=120M,node=2,gres/gpu:a100=4,gres/gpu=4.
func tres(list, name string) (string, bool) {
	for _, kv := range strings.Split(list, ",") {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			return v, true
		}
	}
	return "", false
}

// tresGPUs counts the GPUs of a list; with types only, their sum.
func tresGPUs(list string) (int, bool) {
	if v, ok := tres(list, "gres/gpu"); ok {
		n, err := strconv.Atoi(v)
		return n, err == nil && n >= 0
	}
	sum, found := 0, false
	for _, kv := range strings.Split(list, ",") {
		if k, v, ok := strings.Cut(kv, "="); ok && strings.HasPrefix(k, "gres/gpu:") {
			if n, err := strconv.Atoi(v); err == nil && n >= 0 {
				sum += n
				found = true
			}
		}
	}
	return sum, found
}

// Seconds reads [days-]hours:minutes:seconds; -1 for no limit.
func seconds(s string) (int64, bool) {
	switch s {
	case "UNLIMITED", "INFINITE":
		return -1, true
	}
	var days int64
	if d, rest, ok := strings.Cut(s, "-"); ok {
		n, err := strconv.ParseInt(d, 10, 32)
		if err != nil || n < 0 {
			return 0, false
		}
		days, s = n, rest
	}
	s, _, _ = strings.Cut(s, ".") // parts of a second
	var sec int64
	parts := strings.Split(s, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return 0, false
	}
	for _, p := range parts {
		n, err := strconv.ParseInt(p, 10, 32)
		if err != nil || n < 0 {
			return 0, false
		}
		sec = sec*60 + n
	}
	return days*86400 + sec, true
}

// slurmTime reads the time that Slurm prints when SLURM_TIME_FORMAT is not set.
func slurmTime(s string) (time.Time, bool) {
	t, err := time.ParseInLocation("2006-01-02T15:04:05", s, time.Local)
	return t, err == nil
}

// said returns a value unless Slurm says that there is none.
func said(s string) (string, bool) {
	switch s {
	case "", "(null)", "Unknown", "None", "N/A", "None assigned", "n/a":
		return "", false
	}
	return s, true
}
