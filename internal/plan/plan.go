// Package plan chooses the PyTorch build that runs on given nodes and says how
// to get it: which release and CUDA build, what the choice needs and gives up,
// why others do not fit, and the commands for the installer in use. It knows
// only the facts that it is given and the tables: no files, no network.
package plan

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/tables"
)

// Schema names the layout of a Plan. Ids and the schema only grow.
const Schema = "ncclinic.plan/v1"

// GPU is one kind of GPU: its product name, its compute capability ("8.0"), or both.
type GPU struct {
	Name string `json:"name,omitempty"`
	Cap  string `json:"cap,omitempty"`
	// GFX is the architecture of an AMD GPU (gfx90a), Maker who made it when that
	// is not NVIDIA.
	GFX   string `json:"gfx,omitempty"`
	Maker string `json:"maker,omitempty"`
}

// Label names a GPU for people.
func (g GPU) Label() string {
	switch {
	case g.GFX != "" && !strings.EqualFold(g.Name, g.GFX):
		return strings.TrimSpace(g.Name + " (" + g.GFX + ")")
	case g.GFX != "":
		return g.GFX
	case g.Name == "":
		return g.Cap
	case g.Cap == "":
		return g.Name
	}
	return g.Name + " (" + g.Cap + ")"
}

// Node is one kind of node on which the job may run.
type Node struct {
	Name   string `json:"name,omitempty"`
	Driver string `json:"driver,omitempty"` // of the kernel module, 535.161.08; "" when not known
	// Compat is the version of the user-mode driver when it comes from a forward
	// compatibility package (cuda-compat) that is in the way of the loader already.
	Compat string `json:"compat,omitempty"`
	GPUs   []GPU  `json:"gpus"`
}

// Have is the torch that is there now.
type Have struct {
	Version string `json:"version,omitempty"` // 2.6.0+cpu, as it says itself
	CUDA    string `json:"cuda,omitempty"`    // 12.4; "" for none
	Accel   string `json:"accel,omitempty"`   // cpu, cuda, rocm, xpu; "" when not known
	NCCL    string `json:"nccl,omitempty"`    // version of the libnccl that loads
	// Archs are the GPU architectures that the build carries, when they were read.
	Archs []string `json:"archs,omitempty"`
	// Broken says that the build must be put in again even when it is the right
	// one: files are missing or mixed.
	Broken bool `json:"broken,omitempty"`
	// NoNCCL says that the build was read and has no NCCL.
	NoNCCL bool `json:"noNccl,omitempty"`
}

// Input is all that a plan is made of.
type Input struct {
	Python  string // 3.11, 3.13t; "" when not known
	OS      string // linux; "" when not known
	Machine string // x86_64, aarch64
	Glibc   string // 2.28
	Board   string // Jetson board: torch's wheels are not for it
	Nodes   []Node
	Have    Have
	Wish    string // version, specifier or CUDA tag that the user asked for
	Pins    []Pin
	Index   *Index // what the site's mirror has; nil: what the tables say was published
	// Forward allows builds that need a cuda-compat package.
	Forward bool
	Env     Env

	amd bool // all GPUs are AMD's: builds for ROCm are wanted
	// real are the nodes with the driver that they must have where the one that
	// was given no longer knows the GPU.
	real []Node
}

// How a build runs on the driver.
const (
	Direct  = "direct"  // the driver is as new as the toolkit
	Minor   = "minor"   // by minor-version compatibility
	Forward = "forward" // with a cuda-compat package
	Unsaid  = "unknown" // the driver is not known
)

// Ids of options.
const (
	OptKeep    = "keep"    // the release that is there or that was asked for
	OptNearest = "nearest" // the smallest change of release
	OptNewest  = "newest"  // the newest release that works
)

// Option is one build that works, as far as the facts tell.
type Option struct {
	ID        string   `json:"id"`
	Also      []string `json:"also,omitempty"` // other ids of the same build
	Torch     string   `json:"torch"`          // 2.6.0
	Tag       string   `json:"tag"`            // cu124
	Local     bool     `json:"local"`          // the wheel carries the tag in its version
	CUDA      string   `json:"cuda"`
	ROCm      string   `json:"rocm,omitempty"`
	NCCL      string   `json:"nccl,omitempty"`
	How       string   `json:"how"`
	Certainty string   `json:"certainty"` // proven: all that it takes is known; possible: see Needs
	Installed bool     `json:"installed"` // it is what is there now
	Needs     []Reason `json:"needs"`     // what must be true that nobody looked at
	GivesUp   []Reason `json:"givesUp"`
	Tool      string   `json:"tool,omitempty"`
	Module    string   `json:"module,omitempty"` // of the site, in place of a wheel
	Steps     []Step   `json:"steps"`
}

// Requirement is the version as pip writes it: 2.6.0+cu124.
func (o *Option) Requirement() string {
	if o.Local {
		return o.Torch + "+" + o.Tag
	}
	return o.Torch
}

// Reject is a build that does not do, and why.
type Reject struct {
	Torch string `json:"torch"`
	Tag   string `json:"tag,omitempty"`
	Why   Reason `json:"why"`
}

// Plan is the outcome: options, best first; none when the wish is impossible.
type Plan struct {
	Schema   string   `json:"schema"`
	Tables   Ends     `json:"tables"`
	Python   string   `json:"python,omitempty"`
	Machine  string   `json:"machine,omitempty"`
	Glibc    string   `json:"glibc,omitempty"`
	Nodes    []Node   `json:"nodes"`
	Have     *Have    `json:"have"`
	Wish     string   `json:"wish,omitempty"`
	Pins     []Pin    `json:"pins"`
	Options  []Option `json:"options"`
	Rejected []Reject `json:"rejected"`
	// Impossible says why what was asked for cannot be had; the options are then
	// the nearest that can.
	Impossible []Reason `json:"impossible"`
	Unknown    []Reason `json:"unknown"` // facts that are missing, and how to get them
	Notes      []Reason `json:"notes"`   // contradictions and other things to see
}

// Ends says where the tables end.
type Ends struct {
	Torch string `json:"torch"`
	CUDA  string `json:"cuda"`
	Read  string `json:"read"`
}

// Proven and possible, as in reports.
const (
	proven   = "proven"
	possible = "possible"
)

func ends() Ends {
	return Ends{Torch: tables.NewestRelease(), CUDA: tables.NewestCUDA(), Read: tables.Read}
}
