package node

import (
	"path"
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

const procLimits = "/proc/self/limits"

// parseLimits reads /proc/self/limits: name in 26 columns, then soft, hard and unit.
func parseLimits(text string) map[string][2]int64 {
	out := map[string][2]int64{}
	for _, l := range strings.Split(text, "\n") {
		if len(l) < 27 {
			continue
		}
		f := strings.Fields(l[26:])
		if len(f) < 2 {
			continue
		}
		soft, ok1 := limit(f[0])
		hard, ok2 := limit(f[1])
		if ok1 && ok2 {
			out[strings.TrimSpace(l[:26])] = [2]int64{soft, hard}
		}
	}
	return out
}

func limit(s string) (int64, bool) {
	if s == "unlimited" {
		return -1, true
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n >= 0
}

func (r *reader) limits() {
	l := &r.b.Node.Limits
	text, err := r.text(procLimits)
	if err != nil {
		if !missing(err) {
			at := fact.File(procLimits)
			l.Memlock, l.Nofile, l.Nproc = fact.Fail[int64](err.Error(), at), fact.Fail[int64](err.Error(), at), fact.Fail[int64](err.Error(), at)
		}
		return
	}
	all := parseLimits(text)
	set := func(name string, soft, hard *fact.Val[int64]) {
		at := fact.FileExcerpt(procLimits, lineOf(text, name))
		v, ok := all[name]
		if !ok {
			*soft = fact.Fail[int64]("no line for it", at)
			return
		}
		*soft = fact.Of(v[0], at)
		if hard != nil {
			*hard = fact.Of(v[1], at)
		}
	}
	set("Max locked memory", &l.Memlock, &l.MemlockHard)
	set("Max open files", &l.Nofile, &l.NofileHard)
	set("Max processes", &l.Nproc, nil)
}

func (r *reader) shm() {
	if r.m.OS == nil {
		return
	}
	at := fact.Command("statfs /dev/shm", "")
	u, err := r.m.OS.Statfs("/dev/shm")
	if err != nil {
		r.b.Node.Shm = orAbsent[fact.FSUsage](err, at)
		return
	}
	r.b.Node.Shm = fact.Of(u, at)
}

// parseMeminfo returns MemTotal and MemAvailable in bytes, -1 where there is no line.
func parseMeminfo(text string) (total, available int64) {
	total, available = -1, -1
	for _, l := range strings.Split(text, "\n") {
		f := strings.Fields(l)
		if len(f) < 2 {
			continue
		}
		n, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil || n < 0 || n > 1<<50 {
			continue
		}
		switch f[0] {
		case "MemTotal:":
			total = n << 10
		case "MemAvailable:":
			available = n << 10
		}
	}
	return
}

func (r *reader) memory() {
	const p = "/proc/meminfo"
	text, err := r.text(p)
	if err != nil {
		if !missing(err) {
			r.b.Node.Memory = fact.Fail[fact.Memory](err.Error(), fact.File(p))
		}
		return
	}
	var m fact.Memory
	m.Total, m.Available = parseMeminfo(text)
	if m.Total < 0 {
		r.b.Node.Memory = fact.Fail[fact.Memory]("no MemTotal in it", fact.File(p))
		return
	}
	m.Available = max(m.Available, 0)
	m.Cgroup, m.CgroupAt = r.cgroupLimit()
	r.b.Node.Memory = fact.Of(m, fact.FileExcerpt(p, lineOf(text, "MemTotal")))
}

// cgroupLimit returns the smallest memory limit from the cgroup of this process
// up to the root, 0 when there is none. Slurm sets it on the job, the step or
// the task, depending on the version.
func (r *reader) cgroupLimit() (bytes int64, at string) {
	text, err := r.text("/proc/self/cgroup")
	if err != nil {
		return 0, ""
	}
	for _, l := range strings.Split(text, "\n") {
		f := strings.SplitN(l, ":", 3)
		if len(f) != 3 || !strings.HasPrefix(f[2], "/") {
			continue
		}
		root, file := "", ""
		switch {
		case f[0] == "0" && f[1] == "":
			root, file = "/sys/fs/cgroup", "memory.max"
		case hasWord(f[1], "memory"):
			root, file = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		dir := path.Clean(f[2])
		for range 32 {
			p := path.Join(root, dir, file)
			if s, err := r.text(p); err == nil {
				// v1 says "no limit" with the largest number of pages.
				if n, err := strconv.ParseInt(s, 10, 64); err == nil && n > 0 && n < 1<<60 && (bytes == 0 || n < bytes) {
					bytes, at = n, p
				}
			}
			if dir == "/" {
				break
			}
			dir = path.Dir(dir)
		}
	}
	return bytes, at
}

func hasWord(list, word string) bool {
	for _, w := range strings.Split(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}
