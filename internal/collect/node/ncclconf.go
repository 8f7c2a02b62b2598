package node

import (
	"path"
	"sort"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
)

// Layers of NCCL settings, in the order in which they win.
const (
	LayerEnv  = "environment"
	LayerFile = "NCCL_CONF_FILE"
	LayerHome = "~/.nccl.conf"
	LayerEtc  = "/etc/nccl.conf"
)

const (
	maxConf     = 256 << 10
	maxSettings = 512
)

// ncclConf lists NCCL's settings of all layers. As src/misc/param.cc of NCCL
// does it (read v2.22.3 to v2.30.7 on 2026-11-30): files are read after the
// environment and never overwrite what is set, not even an empty value, so the
// first one wins, also within a file. NCCL_CONF_FILE, since 2.23, stands in for
// ~/.nccl.conf; /etc/nccl.conf is always read. (Home is that of the passwd file
// before 2.30 and $HOME since.)
func (r *reader) ncclConf() {
	taken := map[string]bool{}
	r.envConf(taken)
	custom := r.m.Getenv("NCCL_CONF_FILE")
	if custom != "" {
		if path.IsAbs(custom) {
			r.confFile(custom, LayerFile, true, taken)
		} else {
			r.b.AddProblem("NCCL_CONF_FILE", "not an absolute path: it depends on the folder in which the job runs")
		}
	}
	if path.IsAbs(r.m.Home) {
		r.confFile(path.Join(r.m.Home, ".nccl.conf"), LayerHome, custom == "", taken)
	}
	r.confFile("/etc/nccl.conf", LayerEtc, true, taken)
}

// envConf lists the settings of the environment and notes all of its names.
func (r *reader) envConf(taken map[string]bool) {
	var names []string
	for k := range r.m.Env {
		if strings.HasPrefix(k, "NCCL_") {
			names = append(names, k)
		}
		taken[k] = true
	}
	sort.Strings(names)
	for _, k := range names {
		v := r.m.Env[k]
		r.b.NCCLConf = append(r.b.NCCLConf, fact.Setting{Name: k, Value: fact.Clip(v, 500), Layer: LayerEnv, Wins: true, At: fact.EnvVarAt(k, v)})
	}
}

// confFile adds the settings of one file; live is false for a file that is not
// read because NCCL_CONF_FILE takes its place.
func (r *reader) confFile(p, layer string, live bool, taken map[string]bool) {
	b, err := source.ReadFile(r.m.FS, p, maxConf)
	if err != nil {
		if !missing(err) || layer == LayerFile { // NCCL passes over a file that is not there
			r.b.AddProblem(p, err.Error())
		}
		return
	}
	for _, s := range parseConf(string(b)) {
		if len(r.b.NCCLConf) == maxSettings {
			r.b.AddProblem(p, "has too many settings, the rest was not read")
			return
		}
		s.Layer = layer
		s.Wins = live && !taken[s.Name]
		s.At = fact.FileLine(p, s.At.Line, s.At.Excerpt)
		if live {
			taken[s.Name] = true
		}
		r.b.NCCLConf = append(r.b.NCCLConf, s)
	}
}

// parseConf reads a file as NCCL does: everything before the first "=" is the
// name and everything after it the value. Nothing is trimmed: "NCCL_DEBUG =
// INFO" sets a variable whose name ends in a blank, and "export NCCL_X=1" one
// that is named "export NCCL_X". Lines of other names are not listed, they may
// hold anything.
func parseConf(text string) []fact.Setting {
	var out []fact.Setting
	for i, l := range strings.Split(text, "\n") {
		if strings.HasPrefix(l, "#") {
			continue
		}
		l = strings.TrimSuffix(l, "\r")
		k, v, ok := strings.Cut(l, "=")
		if !ok || !strings.Contains(k, "NCCL_") || len(out) == maxSettings {
			continue
		}
		k, v = clipC(k), clipC(v)
		out = append(out, fact.Setting{Name: k, Value: v, At: fact.Evidence{Line: i + 1, Excerpt: fact.Clip(printable(l), 200)}})
	}
	return out
}

// clipC cuts a name or value where NCCL's buffer of 1024 bytes does.
func clipC(s string) string {
	s, _, _ = strings.Cut(s, "\x00")
	if len(s) > 1023 {
		s = strings.ToValidUTF8(s[:1023], "")
	}
	return printable(s)
}
