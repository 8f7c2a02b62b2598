package node

import (
	"path"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var (
	nvidiaDev = lazyre.New(`^nvidia(\d+|ctl|-uvm|-uvm-tools|-modeset)$`)
	renderDev = lazyre.New(`^renderD\d+$`)
)

// deviceFiles lists the device files of GPUs and whether their modes let this
// process in. None is opened: that would wake the GPU, and a wedged driver
// would hold us.
func (r *reader) deviceFiles() {
	n := &r.b.Node
	dev, err := r.names("/dev")
	if err != nil {
		if !missing(err) {
			n.DeviceFiles = fact.Fail[[]fact.DeviceFile](err.Error(), fact.File("/dev"))
		}
		return
	}
	var found []string
	for _, name := range dev {
		if nvidiaDev.MatchString(name) || name == "kfd" || name == "dxg" || name == "nvhost-gpu" || name == "nvmap" {
			found = append(found, "/dev/"+name)
		}
	}
	for _, name := range r.optional("/dev/dri") {
		if renderDev.MatchString(name) {
			found = append(found, "/dev/dri/"+name)
		}
	}
	out := make([]fact.DeviceFile, 0, len(found))
	for _, p := range found {
		d := fact.DeviceFile{Path: p, OK: true}
		if r.m.OS != nil {
			if err := r.m.OS.Access(p); err != nil {
				d.OK, d.Why = false, err.Error()
			}
		}
		out = append(out, d)
	}
	if len(out) == 0 {
		n.DeviceFiles = fact.None[[]fact.DeviceFile](fact.File("/dev"))
	} else {
		n.DeviceFiles = fact.Of(out, fact.File("/dev"))
	}

	const imex = "/dev/nvidia-caps-imex-channels"
	n.IMEX = r.listed(imex, "channel")
}

// optional lists a folder that need not be there.
func (r *reader) optional(dir string) []string {
	names, err := r.names(dir)
	if err != nil && !missing(err) {
		r.b.AddProblem(dir, err.Error())
	}
	return names
}

// listed is a fact of the entries of a folder that start with a prefix.
func (r *reader) listed(dir, prefix string) fact.Val[[]string] {
	names, err := r.names(dir)
	if err != nil {
		return orAbsent[[]string](err, fact.File(dir))
	}
	var out []string
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			out = append(out, dir+"/"+name)
		}
	}
	if len(out) == 0 {
		return fact.None[[]string](fact.File(dir))
	}
	return fact.Of(out, fact.File(dir))
}

// modules looks for the kernel module of GPUDirect RDMA.
func (r *reader) modules() {
	if !r.exists("/sys/module") {
		return
	}
	for _, p := range []string{"/sys/module/nvidia_peermem", "/sys/module/nv_peer_mem"} {
		if r.exists(p) {
			r.b.Node.Peermem = fact.Of(true, fact.File(p))
			return
		}
	}
	r.b.Node.Peermem = fact.Of(false, fact.File("/sys/module/nvidia_peermem"))
}

// mps looks for the pipe folder of an MPS control daemon.
func (r *reader) mps() {
	dir := r.m.Getenv("CUDA_MPS_PIPE_DIRECTORY")
	at := fact.EnvVarAt("CUDA_MPS_PIPE_DIRECTORY", dir)
	if !path.IsAbs(dir) {
		dir = "/tmp/nvidia-mps"
		at = fact.File(dir)
	}
	if r.exists(dir+"/control") || r.exists(dir+"/nvidia-cuda-mps-control.pid") {
		r.b.Node.MPS = fact.Of(dir, at)
		return
	}
	r.b.Node.MPS = fact.None[string](at)
}
