package cli

import (
	"path"
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/source"
)

// oomKills is how often the kernel killed for want of memory.
type oomKills struct {
	here, node     int  // in the memory cgroup of this process; on the whole node, in any cgroup
	hereOK, nodeOK bool // whether that is known
}

// since is what happened after an earlier reading.
func (o oomKills) since(before oomKills) oomKills {
	out := oomKills{hereOK: o.hereOK && before.hereOK, nodeOK: o.nodeOK && before.nodeOK}
	if out.hereOK {
		out.here = o.here - before.here
	}
	if out.nodeOK {
		out.node = o.node - before.node
	}
	return out
}

// readOOM reads the kernel's counters.
func readOOM(m *source.Machine) oomKills {
	var o oomKills
	o.here, o.hereOK = oomInCgroup(m)
	if text, err := source.ReadHead(m.FS, "/proc/vmstat", 64<<10); err == nil {
		o.node, o.nodeOK = counter(string(text), "oom_kill ")
	}
	return o
}

// oomInCgroup reads the counter of the memory cgroup of this process.
func oomInCgroup(m *source.Machine) (int, bool) {
	raw, err := source.ReadHead(m.FS, "/proc/self/cgroup", 64<<10)
	if err != nil {
		return 0, false
	}
	for _, l := range strings.Split(string(raw), "\n") {
		f := strings.SplitN(l, ":", 3)
		if len(f) != 3 {
			continue
		}
		file := ""
		switch {
		case f[0] == "0" && f[1] == "":
			file = path.Join("/sys/fs/cgroup", f[2], "memory.events")
		case f[1] == "memory":
			file = path.Join("/sys/fs/cgroup/memory", f[2], "memory.oom_control")
		default:
			continue
		}
		text, err := source.ReadHead(m.FS, file, 4096)
		if err != nil {
			continue
		}
		if n, ok := counter(string(text), "oom_kill "); ok {
			return n, true
		}
	}
	return 0, false
}

// counter finds the number behind a name at the beginning of a line.
func counter(text, name string) (int, bool) {
	for _, l := range strings.Split(text, "\n") {
		if v, ok := strings.CutPrefix(l, name); ok {
			n, err := strconv.Atoi(strings.TrimSpace(v))
			return n, err == nil
		}
	}
	return 0, false
}
