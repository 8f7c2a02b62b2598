package node

import (
	"path"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
)

// container tells by which runtime the process was started. Markers, read in
// the sources of the runtimes on 2026-11-30: Apptainer and Singularity set
// APPTAINER_CONTAINER/SINGULARITY_CONTAINER and mount /.singularity.d; enroot
// leaves /.lock and /.enroot and mounts its root from a path of its own (pyxis
// names it pyxis_JOB_STEP); Docker has /.dockerenv, Podman /run/.containerenv.
func (r *reader) container() {
	c := &r.b.Container
	env := r.m.Env
	mounts := r.mountinfo()
	set := func(kind, image string, at fact.Evidence) {
		c.Kind = fact.Of(kind, at)
		if image != "" {
			c.Image = fact.Of(image, at)
		}
	}
	enroot := enrootRoot(mounts)
	switch {
	case env["APPTAINER_CONTAINER"] != "":
		set("apptainer", env["APPTAINER_CONTAINER"], fact.EnvVarAt("APPTAINER_CONTAINER", env["APPTAINER_CONTAINER"]))
	case env["SINGULARITY_CONTAINER"] != "":
		set("singularity", env["SINGULARITY_CONTAINER"], fact.EnvVarAt("SINGULARITY_CONTAINER", env["SINGULARITY_CONTAINER"]))
	case r.exists("/.singularity.d/actions"):
		set("singularity", "", fact.File("/.singularity.d"))
	case enroot != "":
		set("enroot", "", fact.FileExcerpt("/proc/self/mountinfo", enroot))
	case r.exists("/.enroot"):
		set("enroot", "", fact.File("/.enroot"))
	case r.exists("/run/.containerenv"):
		set("podman", r.podmanImage(), fact.File("/run/.containerenv"))
	case r.exists("/.dockerenv"):
		set("docker", "", fact.File("/.dockerenv"))
	case env["SHIFTER_RUNTIME"] != "":
		set("shifter", env["SHIFTER_IMAGEREQUEST"], fact.EnvVarAt("SHIFTER_RUNTIME", env["SHIFTER_RUNTIME"]))
	case env["CH_RUNNING"] != "":
		set("charliecloud", "", fact.EnvVarAt("CH_RUNNING", env["CH_RUNNING"]))
	default:
		c.Kind = fact.None[string](fact.File("/proc/self/mountinfo"))
		return
	}
	c.NV = r.bound(mounts)
}

func (r *reader) podmanImage() string {
	text, _ := r.text("/run/.containerenv")
	for _, l := range strings.Split(text, "\n") {
		if v, ok := strings.CutPrefix(l, "image="); ok {
			return strings.Trim(firstLine(v), `"`)
		}
	}
	return ""
}

// mount is one line of /proc/self/mountinfo.
type mount struct {
	root, point string // within the file system, and where it is mounted
	line        string
}

const maxMounts = 1 << 20 // bytes of mountinfo: a node may have thousands of mounts

func (r *reader) mountinfo() []mount {
	b, err := source.ReadHead(r.m.FS, "/proc/self/mountinfo", maxMounts)
	if err != nil && !missing(err) {
		r.b.AddProblem("/proc/self/mountinfo", err.Error())
	}
	return parseMountinfo(string(b))
}

// parseMountinfo reads lines of proc(5): ID parent major:minor root point options … - type source super.
func parseMountinfo(text string) []mount {
	var out []mount
	for _, l := range strings.Split(text, "\n") {
		f := strings.SplitN(l, " ", 6)
		if len(f) < 6 || len(out) == 8192 {
			continue
		}
		out = append(out, mount{root: f[3], point: f[4], line: l})
	}
	return out
}

// enrootRoot returns what in the mount of "/" names enroot or pyxis.
func enrootRoot(ms []mount) string {
	for _, m := range ms {
		if m.point != "/" {
			continue
		}
		for _, w := range strings.FieldsFunc(m.line, func(c rune) bool { return c == ' ' || c == ',' || c == '=' }) {
			if strings.Contains(w, "/enroot") || strings.Contains(path.Base(w), "pyxis_") {
				return fact.Clip(printable(w), 120)
			}
		}
	}
	return ""
}

// bound says whether the driver's user-mode libraries were brought into the
// container: by --nv under /.singularity.d/libs, by the NVIDIA container tools
// as mounts of single files, on some clouds as /usr/local/nvidia. Without the mount table nothing is known.
func (r *reader) bound(ms []mount) fact.Val[bool] {
	for _, name := range r.optional("/.singularity.d/libs") {
		if strings.HasPrefix(name, "libcuda.so") {
			return fact.Of(true, fact.File("/.singularity.d/libs/"+name))
		}
	}
	for _, m := range ms {
		if b := path.Base(m.point); strings.HasPrefix(b, "libcuda.so") || b == "nvidia-smi" || strings.HasPrefix(m.point, "/proc/driver/nvidia") || strings.HasPrefix(m.point, "/usr/local/nvidia") {
			return fact.Of(true, fact.FileExcerpt("/proc/self/mountinfo", fact.Clip(printable(m.point), 200)))
		}
	}
	if len(ms) == 0 {
		return fact.Val[bool]{}
	}
	return fact.Of(false, fact.File("/proc/self/mountinfo"))
}
