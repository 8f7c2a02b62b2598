package fact

import "time"

// BundleSchema names the layout of a Bundle. It only grows.
const BundleSchema = "ncclinic.facts/v1"

// Bundle is everything that was observed in one place: collector output, wire
// format between nodes, attachment of a bug report and test fixture. Secrets
// are masked before anything enters it.
type Bundle struct {
	Schema  string    `json:"schema"`
	Tool    string    `json:"tool,omitempty"`
	Taken   time.Time `json:"taken,omitzero"`
	Subject Subject   `json:"subject,omitzero"`
	Target  Target    `json:"target,omitzero"` // the artefact that was read, if it was one

	Host   Host     `json:"host,omitzero"`
	Env    []EnvVar `json:"env,omitempty"` // only variables that matter here, see EnvMatters
	Python Python   `json:"python,omitzero"`
	Torch  []Torch  `json:"torch,omitempty"` // in search order: the first one wins
	Dists  []Dist   `json:"dists,omitempty"` // installed distributions that matter, in search order
	Loads  []Load   `json:"loads,omitempty"` // what the dynamic loader would take
	// Extensions are compiled packages that link against torch, those that could be examined.
	Extensions []Extension `json:"extensions,omitempty"`
	Node       Node        `json:"node,omitzero"`
	NCCLConf   []Setting   `json:"ncclConf,omitempty"` // NCCL settings of all layers in order of precedence
	Container  Container   `json:"container,omitzero"`
	Slurm      Slurm       `json:"slurm,omitzero"`
	Live       Live        `json:"live,omitzero"`
	Nodes      *NodeSet    `json:"nodes,omitempty"` // of an allocation: what the probes on its nodes saw

	Problems []Problem `json:"problems,omitempty"` // what could not be read, and why
}

// Subject says what was examined. Kind is one of environment, target, script,
// files, allocation, job.
type Subject struct {
	Kind string `json:"kind,omitempty"`
	Name string `json:"name,omitempty"`
}

// Problem is something that could not be read. The rest was still collected.
type Problem struct {
	What string `json:"what"` // file, command or collector
	Why  string `json:"why"`
}

// Host is the machine or the image that is looked at.
type Host struct {
	Name   Val[string] `json:"name,omitzero"`
	OS     Val[string] `json:"os,omitzero"`     // linux, windows, darwin
	Distro Val[string] `json:"distro,omitzero"` // PRETTY_NAME of os-release
	Arch   Val[string] `json:"arch,omitzero"`   // x86_64, aarch64 as uname -m says
	Kernel Val[string] `json:"kernel,omitzero"`
	Glibc  Val[string] `json:"glibc,omitzero"` // 2.36
	Board  Val[string] `json:"board,omitzero"` // Jetson model from the device tree
	L4T    Val[string] `json:"l4t,omitzero"`   // release of Jetson Linux: 35.4.1
}

// EnvVar is one environment variable that matters.
type EnvVar struct {
	Name  string `json:"name"`
	Value string `json:"value"` // masked when it is secret
}

// Setting is one NAME=value of a layer of settings, such as a line of /etc/nccl.conf.
type Setting struct {
	Name  string   `json:"name"`
	Value string   `json:"value"`
	Layer string   `json:"layer"` // environment, NCCL_CONF_FILE, ~/.nccl.conf, /etc/nccl.conf
	Wins  bool     `json:"wins"`  // this layer is the one that NCCL would use
	At    Evidence `json:"at,omitzero"`
}

// Container says in which container, if any, the process runs.
type Container struct {
	Kind  Val[string] `json:"kind,omitzero"`  // apptainer, singularity, enroot, docker, podman; Absent: none
	Image Val[string] `json:"image,omitzero"` // path or name of the image
	NV    Val[bool]   `json:"nv,omitzero"`    // driver libraries were bound in (--nv, the enroot hook, --gpus)
}

// Lookup returns the value of an environment variable and whether it is set.
func (b *Bundle) Lookup(name string) (string, bool) {
	for i := range b.Env {
		if b.Env[i].Name == name {
			return b.Env[i].Value, true
		}
	}
	return "", false
}

// NCCL returns the NCCL setting that is in force and whether there is one.
func (b *Bundle) NCCL(name string) (Setting, bool) {
	for _, s := range b.NCCLConf {
		if s.Name == name && s.Wins {
			return s, true
		}
	}
	return Setting{}, false
}

// Winner returns the torch that "import torch" would take, or nil.
func (b *Bundle) Winner() *Torch {
	if len(b.Torch) == 0 {
		return nil
	}
	return &b.Torch[0]
}

// LoadOf returns what the loader would do for a library name such as libnccl.so.2, or nil.
func (b *Bundle) LoadOf(soname string) *Load {
	for i := range b.Loads {
		if b.Loads[i].Soname == soname {
			return &b.Loads[i]
		}
	}
	return nil
}

// AddProblem records that something could not be read.
func (b *Bundle) AddProblem(what string, why string) {
	b.Problems = append(b.Problems, Problem{What: what, Why: why})
}
