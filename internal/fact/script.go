package fact

import (
	"bytes"
	"strings"
)

// Pos is a place in a script. Line and Col count from 1; Col counts bytes.
type Pos struct {
	Line int `json:"line"`
	Col  int `json:"col"`
}

// Before reports whether p stands before q.
func (p Pos) Before(q Pos) bool { return p.Line < q.Line || p.Line == q.Line && p.Col < q.Col }

// Script is a batch script as sbatch and its shell would read it. Nothing of
// it is executed; what cannot be followed is unknown, not absent.
type Script struct {
	Name string `json:"name"`
	Src  []byte `json:"-"`

	// Batch says that Slurm ran it as a batch script: it needs no directive to be one.
	Batch bool `json:"batch,omitempty"`

	Shebang    string `json:"shebang,omitempty"` // after "#!", trimmed
	HasShebang bool   `json:"hasShebang"`
	Shell      string `json:"shell,omitempty"`      // bash, sh, dash, ksh, zsh, csh, tcsh, fish, python, perl, other; "": none named
	ShellFlags string `json:"shellFlags,omitempty"` // letters of the shebang's short options: "le" of bash -le

	CRLF     int  `json:"crlf,omitempty"`     // first line that ends in \r\n; 0: none
	CRLFs    int  `json:"crlfs,omitempty"`    // number of such lines
	NUL      Pos  `json:"nul,omitzero"`       // first NUL byte
	BOM      bool `json:"bom,omitempty"`      // the file starts with a UTF-8 byte order mark
	NumLines int  `json:"numLines,omitempty"` // lines of the file

	Directives []Directive      `json:"directives,omitempty"` // live options in order; the last of a name wins
	Stray      []Stray          `json:"stray,omitempty"`      // lines that look like directives and are none
	Refused    []DirectiveError `json:"refused,omitempty"`    // what makes sbatch refuse the file
	FirstCmd   Pos              `json:"firstCmd,omitzero"`    // the line at which sbatch stops reading
	HetGroups  int              `json:"hetGroups,omitempty"`  // components of a heterogeneous job; 0: not one
	Request    Request          `json:"request"`              // what the live options add up to

	Syntax       *SyntaxError  `json:"syntax,omitempty"`
	Parsed       bool          `json:"parsed"` // the body was understood as shell
	Placeholders []Placeholder `json:"placeholders,omitempty"`
	Generator    bool          `json:"generator,omitempty"` // it writes or pipes scripts and calls sbatch
	CallsSbatch  bool          `json:"callsSbatch,omitempty"`
	Sources      []Sourced     `json:"sources,omitempty"`

	Commands []ScriptCmd `json:"commands,omitempty"` // simple commands in the order in which they run
	Assigns  []Assign    `json:"assigns,omitempty"`
	Reads    []Read      `json:"reads,omitempty"`
	Launches []Launch    `json:"launches,omitempty"`
	Steps    []Step      `json:"steps,omitempty"` // srun, mpirun …
	Traps    []Trap      `json:"traps,omitempty"`
	Sets     []ShellSet  `json:"sets,omitempty"` // set -e, set +u, set -o pipefail, in order
	Holes    []Hole      `json:"holes,omitempty"`
	Funcs    []string    `json:"funcs,omitempty"`
	Heredocs []Heredoc   `json:"heredocs,omitempty"`
	// Top is the outline of the top level: what runs last decides the exit status.
	Top []TopStmt `json:"top,omitempty"`

	lines [][2]int
	text  string // Src, once somebody asks for lines
}

// Directive is one option of the live #SBATCH lines.
type Directive struct {
	Pos
	Name     string `json:"name"`    // canonical long name, such as "nodes"; as written when not known
	Written  string `json:"written"` // as it stands: "-N", "--nodes"
	Value    string `json:"value,omitempty"`
	HasValue bool   `json:"hasValue,omitempty"`
	ValuePos Pos    `json:"valuePos,omitzero"`
	Known    bool   `json:"known"`          // stock Slurm has the option; sites add others
	Near     string `json:"near,omitempty"` // of a step: what an unknown option was meant to be
	// Maybe are the options that begin so when the name is no whole one and could be several.
	Maybe []string `json:"maybe,omitempty"`
	Het   int      `json:"het,omitempty"` // component of a heterogeneous job, from 0
}

// Kinds of a Stray.
const (
	StrayLate      = "late"      // after the first command
	StrayIndented  = "indented"  // blank before #SBATCH
	StrayCommented = "commented" // "# SBATCH --x"
	StrayDisabled  = "disabled"  // ##SBATCH
	StrayMisspelt  = "misspelt"  // #SBTACH
	StrayLower     = "lowercase" // #sbatch --x
	StrayQuoted    = "quoted"    // inside a heredoc or a string
)

// Stray is a line that looks like a directive and that sbatch does not read.
type Stray struct {
	Pos
	Kind    string      `json:"kind"`
	Text    string      `json:"text"`
	Options []Directive `json:"options,omitempty"` // what it would say
}

// Kinds of a DirectiveError.
const (
	RefuseWord    = "word"    // a word that is no option
	RefuseQuote   = "quote"   // quote without end
	RefuseColon   = "colon"   // ":" at the start of a word
	RefuseUnknown = "unknown" // option that stock Slurm does not know
	RefuseRemoved = "removed" // option that Slurm once had
	RefuseNoValue = "novalue" // option without its value
	RefuseValue   = "value"   // value that sbatch cannot read
	RefuseDash    = "dash"    // a dash that is not ASCII
)

// DirectiveError is something in a live line that stops the submission.
type DirectiveError struct {
	Pos
	Kind   string `json:"kind"`
	Text   string `json:"text"`             // the word
	Option string `json:"option,omitempty"` // canonical name, when it is about one
	Why    string `json:"why,omitempty"`    // for values: what was expected
	Near   string `json:"near,omitempty"`   // for unknown options: the one it was meant to be
	// Maybe are the options that begin so when the name is no whole one and could be several.
	Maybe []string `json:"maybe,omitempty"`
}

// Request is what the live options of the first component ask for. 0 and ""
// mean: not said.
type Request struct {
	Nodes          int    `json:"nodes,omitempty"` // minimum
	NodesMax       int    `json:"nodesMax,omitempty"`
	Tasks          int    `json:"tasks,omitempty"`
	TasksPerNode   int    `json:"tasksPerNode,omitempty"`
	TasksPerGPU    int    `json:"tasksPerGPU,omitempty"`
	CPUsPerTask    int    `json:"cpusPerTask,omitempty"`
	CPUsPerGPU     int    `json:"cpusPerGPU,omitempty"`
	GPUs           int    `json:"gpus,omitempty"`        // --gpus: total of the job
	GPUsPerNode    int    `json:"gpusPerNode,omitempty"` // --gpus-per-node
	GresGPUs       int    `json:"gresGPUs,omitempty"`    // --gres=gpu, --tres-per-node=gres/gpu: per node
	GPUsPerTask    int    `json:"gpusPerTask,omitempty"`
	GPUsPerSocket  int    `json:"gpusPerSocket,omitempty"`
	GPUType        string `json:"gpuType,omitempty"`
	GPUAsked       bool   `json:"gpuAsked,omitempty"` // some option asks for GPUs
	GresOther      string `json:"gresOther,omitempty"`
	MemMiB         int64  `json:"memMiB,omitempty"` // --mem, per node; -1: all (--mem=0)
	MemPerCPUMiB   int64  `json:"memPerCPUMiB,omitempty"`
	MemPerGPUMiB   int64  `json:"memPerGPUMiB,omitempty"`
	Seconds        int64  `json:"seconds,omitempty"` // --time; -1: unlimited
	Exclusive      bool   `json:"exclusive,omitempty"`
	Array          string `json:"array,omitempty"`
	Export         string `json:"export,omitempty"`
	Output         string `json:"output,omitempty"`
	Error          string `json:"error,omitempty"`
	Signal         string `json:"signal,omitempty"`
	SignalBatch    bool   `json:"signalBatch,omitempty"` // B:
	SignalName     string `json:"signalName,omitempty"`
	Partition      string `json:"partition,omitempty"`
	Constraint     string `json:"constraint,omitempty"`
	JobName        string `json:"jobName,omitempty"`
	EffectiveNodes int    `json:"effectiveNodes,omitempty"` // of nodes, ntasks and ntasks-per-node; 0: not known
	EffectiveTPN   int    `json:"effectiveTPN,omitempty"`   // tasks per node; 0: not known
	EffectiveGPUs  int    `json:"effectiveGPUs,omitempty"`  // GPUs per node; 0: none or not known, see GPUAsked
}

// SyntaxError says where the shell would stop.
type SyntaxError struct {
	Pos
	Text string `json:"text"`
}

// Placeholder is a part of a template that somebody must fill in.
type Placeholder struct {
	Pos
	Text string `json:"text"`
	Live bool   `json:"live,omitempty"` // in a live directive
}

// Sourced is a file that the script reads into its shell.
type Sourced struct {
	Pos
	Path     string `json:"path"`
	Followed bool   `json:"followed,omitempty"`
	Cmd      int    `json:"cmd"`
}

// Hole stands in a word for what is known only when the script runs.
type Hole struct {
	Pos
	Kind  string `json:"kind"`           // var, cmd, arith, list, glob
	Name  string `json:"name,omitempty"` // of a variable
	Text  string `json:"text"`           // as it stands: "$SLURM_PROCID", "$(hostname)"
	Step  bool   `json:"step,omitempty"` // filled in inside a task, not in the batch shell
	Def   bool   `json:"def,omitempty"`  // ${X:-…}
	Lo    int64  `json:"lo,omitempty"`
	Hi    int64  `json:"hi,omitempty"`
	Range bool   `json:"range,omitempty"` // Lo and Hi bound its number
	Width int    `json:"width,omitempty"` // digits that it always has; 0: not fixed
	More  string `json:"more,omitempty"`  // words that may stand here, or nothing; "": not known
}

// Word is one word of a command after the expansions that could be followed.
type Word struct {
	Pos
	Text  string `json:"text"`            // holes are shown as they stand in the script
	Val   string `json:"val"`             // holes are private-use characters, see Script.HolesOf
	Raw   string `json:"raw,omitempty"`   // source text
	Known bool   `json:"known,omitempty"` // no hole
	Open  bool   `json:"open,omitempty"`  // may be any number of words: $X unquoted, "$@"
}

// HoleBase is the character that stands for hole 0 in Word.Val.
const HoleBase = 0xF0000

// MaxHoles bounds the holes of a script: the size of a private-use plane.
const MaxHoles = 0xFFFD

// HolesOf returns the holes of a value in order.
func (s *Script) HolesOf(val string) []*Hole {
	var out []*Hole
	for _, r := range val {
		if i := int(r) - HoleBase; i >= 0 && i < len(s.Holes) {
			out = append(out, &s.Holes[i])
		}
	}
	return out
}

// HasHole reports whether a value has a hole.
func HasHole(val string) bool {
	// All holes are in planes 15: their UTF-8 form starts with 0xF3.
	if strings.IndexByte(val, 0xF3) < 0 {
		return false
	}
	for _, r := range val {
		if r >= HoleBase && r <= HoleBase+MaxHoles {
			return true
		}
	}
	return false
}

// Show writes a value with its holes as they stand in the script.
func (s *Script) Show(val string) string {
	if !HasHole(val) {
		return val
	}
	var b strings.Builder
	for _, r := range val {
		if i := int(r) - HoleBase; i >= 0 && i < len(s.Holes) {
			b.WriteString(s.Holes[i].Text)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// ScriptCmd is one simple command. Wrappers such as srun, env or a container
// appear as commands of their own, and what they start follows.
type ScriptCmd struct {
	Pos
	Seq       int      `json:"seq"`
	Name      string   `json:"name"` // base name of the first word, "" when not known
	Words     []Word   `json:"words,omitempty"`
	Outer     int      `json:"outer"`           // index of the command that starts it, -1: the script itself
	Step      int      `json:"step"`            // index in Steps of the step in which it runs, -1: the batch shell
	Func      string   `json:"func,omitempty"`  // inside this function
	Dead      bool     `json:"dead,omitempty"`  // in a function that nothing calls
	Cond      int      `json:"cond,omitempty"`  // depth of if, case, && and ||
	Loop      int      `json:"loop,omitempty"`  // depth of loops
	Sub       bool     `json:"sub,omitempty"`   // in a subshell or a command substitution
	Subst     bool     `json:"subst,omitempty"` // in a command substitution
	Back      bool     `json:"back,omitempty"`  // started with &
	Trap      bool     `json:"trap,omitempty"`  // inside a trap handler
	Neg       bool     `json:"neg,omitempty"`   // status is tested: if, while, !, left of && or ||
	OrElse    bool     `json:"orElse,omitempty"`
	PipeTo    []string `json:"pipeTo,omitempty"`    // commands after it in the pipeline
	Piped     bool     `json:"piped,omitempty"`     // not the first of a pipeline
	Container *Box     `json:"container,omitempty"` // it runs inside of this
	Redir     []Redir  `json:"redir,omitempty"`
	Heredoc   int      `json:"heredoc"`          // index in Heredocs of its standard input, -1: none
	File      string   `json:"file,omitempty"`   // of a followed file; "" is the script itself
	Prefix    []string `json:"prefix,omitempty"` // names of NAME=value before it
}

// Redir is a redirection.
type Redir struct {
	Op   string `json:"op"`
	Word Word   `json:"word"`
}

// Heredoc is a here-document or here-string.
type Heredoc struct {
	Pos
	End    int    `json:"end"`    // its last line
	Quoted bool   `json:"quoted"` // <<'EOF': the outer shell expands nothing
	Val    string `json:"val"`
}

// Assign is an assignment in the order of execution.
type Assign struct {
	Pos
	Seq    int    `json:"seq"`
	Name   string `json:"name"`
	Value  Word   `json:"value"`
	Array  []Word `json:"array,omitempty"`
	IsArr  bool   `json:"isArr,omitempty"`
	Export bool   `json:"export,omitempty"` // exported by the same command
	Prefix bool   `json:"prefix,omitempty"` // NAME=value before a command: for that command only
	Unset  bool   `json:"unset,omitempty"`
	Step   int    `json:"step"` // as in ScriptCmd
	Cond   int    `json:"cond,omitempty"`
	Loop   int    `json:"loop,omitempty"`
	Sub    bool   `json:"sub,omitempty"`
	Dead   bool   `json:"dead,omitempty"`
	Func   string `json:"func,omitempty"`
	Bare   bool   `json:"bare,omitempty"` // export NAME without a value
	Cmd    int    `json:"cmd"`            // index of the command it is a prefix of, else -1
	File   string `json:"file,omitempty"`
}

// Read is one expansion of a variable.
type Read struct {
	Pos
	Seq     int    `json:"seq"`
	Name    string `json:"name"`
	Step    int    `json:"step"`              // step in which it is expanded, -1: the batch shell
	Default bool   `json:"default,omitempty"` // ${X:-…} and the like
	Tested  bool   `json:"tested,omitempty"`  // [ -z "$X" ], [[ -n $X ]], ${X:+…}
	Cond    int    `json:"cond,omitempty"`
	Dead    bool   `json:"dead,omitempty"`
	Set     bool   `json:"set,omitempty"`   // the script has set it
	Maybe   bool   `json:"maybe,omitempty"` // a part that is not known may have set it
	Arith   bool   `json:"arith,omitempty"`
	Func    string `json:"func,omitempty"`
	File    string `json:"file,omitempty"`
	Cmd     string `json:"cmd,omitempty"` // name of the command whose argument it is in
}

// Step is one srun, mpirun or another command that starts processes on the
// nodes of the job. 0 means: not said.
type Step struct {
	Pos
	Tool         string      `json:"tool"`
	Cmd          int         `json:"cmd"` // index in Commands
	Outer        int         `json:"outer"`
	Nodes        int         `json:"nodes,omitempty"`
	Tasks        int         `json:"tasks,omitempty"`
	TasksPerNode int         `json:"tasksPerNode,omitempty"`
	GPUsPerTask  int         `json:"gpusPerTask,omitempty"`
	Opts         []Directive `json:"opts,omitempty"`    // options as written, values resolved
	Unknown      bool        `json:"unknown,omitempty"` // an option or count could not be followed
	EffNodes     int         `json:"effNodes,omitempty"`
	EffTasks     int         `json:"effTasks,omitempty"`
	EffTPN       int         `json:"effTPN,omitempty"` // tasks per node, with what the step inherits; 0: not known
}

// Opt returns the last option of the step with a name.
func (t *Step) Opt(name string) *Directive {
	for i := len(t.Opts) - 1; i >= 0; i-- {
		if t.Opts[i].Name == name {
			return &t.Opts[i]
		}
	}
	return nil
}

// Box is a container in which a command runs.
type Box struct {
	Tool  string `json:"tool"` // singularity, apptainer, docker, podman, enroot, pyxis, shifter, sarus, podman-hpc
	Image string `json:"image,omitempty"`
	NV    bool   `json:"nv,omitempty"` // the driver is bound in
	ROCm  bool   `json:"rocm,omitempty"`
	Open  bool   `json:"open,omitempty"` // options could not be followed
	Pos
}

// Kinds of a Launch.
const (
	LaunchTorchrun   = "torchrun" // torchrun, python -m torch.distributed.run
	LaunchLegacy     = "launch"   // python -m torch.distributed.launch
	LaunchAccelerate = "accelerate"
	LaunchDeepSpeed  = "deepspeed"
	LaunchComposer   = "composer"
	LaunchLightning  = "lightning" // lightning run, fabric run
	LaunchColossal   = "colossalai"
	LaunchRay        = "ray"
	LaunchHorovod    = "horovodrun"
	LaunchPython     = "python"
	LaunchWrapper    = "wrapper" // a script or program that could not be followed
)

// Launch is a command that starts the training program. Words are empty where
// the flag is not given.
type Launch struct {
	Pos
	Kind      string `json:"kind"`
	Cmd       int    `json:"cmd"`
	Step      int    `json:"step"` // index in Steps, -1: the batch shell
	Container *Box   `json:"container,omitempty"`

	Nnodes     Word `json:"nnodes,omitzero"`
	Nproc      Word `json:"nproc,omitzero"` // processes per node; for accelerate the total
	NodeRank   Word `json:"nodeRank,omitzero"`
	Backend    Word `json:"backend,omitzero"`  // rdzv backend
	Endpoint   Word `json:"endpoint,omitzero"` // rdzv endpoint
	MasterAddr Word `json:"masterAddr,omitzero"`
	MasterPort Word `json:"masterPort,omitzero"`
	Hostfile   Word `json:"hostfile,omitzero"`
	Config     Word `json:"config,omitzero"`
	Standalone bool `json:"standalone,omitempty"`
	NoPython   bool `json:"noPython,omitempty"`
	MultiGPU   bool `json:"multiGPU,omitempty"` // accelerate --multi_gpu

	Strange []Word `json:"strange,omitempty"` // options before the program that the launcher does not have

	Program string `json:"program,omitempty"` // what it starts
	Args    []Word `json:"args,omitempty"`    // of the program
	Open    bool   `json:"open,omitempty"`    // its options could not be followed: a flag may be there
	Python  string `json:"python,omitempty"`  // interpreter as written
	Cond    int    `json:"cond,omitempty"`
	Dead    bool   `json:"dead,omitempty"`
	Back    bool   `json:"back,omitempty"`
	Guessed bool   `json:"guessed,omitempty"` // stands among the arguments of a command that is not known
}

// Trap is a trap command.
type Trap struct {
	Pos
	Signals []string `json:"signals"`
	Action  string   `json:"action"`
	Seq     int      `json:"seq"`
	Known   bool     `json:"known"`
	Step    int      `json:"step"`
}

// ShellSet is one option that set or shopt turns on or off.
type ShellSet struct {
	Pos
	Name string `json:"name"` // e, u, x, o pipefail as "pipefail", a
	On   bool   `json:"on"`
	Seq  int    `json:"seq"`
	Cond int    `json:"cond,omitempty"`
	Step int    `json:"step"`
	Sub  bool   `json:"sub,omitempty"`
}

// TopStmt is one statement of the top level.
type TopStmt struct {
	Pos
	Kind   string `json:"kind"` // call, assign, if, for, while, case, func, block, pipe, andor, test
	Cmds   [2]int `json:"cmds"` // range in Commands
	Back   bool   `json:"back,omitempty"`
	Assign bool   `json:"assign,omitempty"`
}

// Line returns the text of a line without its end; "" when there is none.
func (s *Script) Line(n int) string {
	s.index()
	if n < 1 || n > len(s.lines) {
		return ""
	}
	l := s.lines[n-1]
	return strings.TrimSuffix(s.text[l[0]:l[1]], "\r")
}

// LineRange returns the byte offsets of a line without its end.
func (s *Script) LineRange(n int) (from, to int, ok bool) {
	s.index()
	if n < 1 || n > len(s.lines) {
		return 0, 0, false
	}
	return s.lines[n-1][0], s.lines[n-1][1], true
}

func (s *Script) index() {
	if s.lines != nil || len(s.Src) == 0 {
		return
	}
	s.text = string(s.Src)
	s.lines = make([][2]int, 0, bytes.Count(s.Src, []byte("\n"))+1)
	for at := 0; at < len(s.Src); {
		end := bytes.IndexByte(s.Src[at:], '\n')
		if end < 0 {
			s.lines = append(s.lines, [2]int{at, len(s.Src)})
			break
		}
		s.lines = append(s.lines, [2]int{at, at + end})
		at += end + 1
	}
}

// Opt returns the live option of a name that wins in the first component, or nil.
func (s *Script) Opt(name string) *Directive {
	for i := len(s.Directives) - 1; i >= 0; i-- {
		if d := &s.Directives[i]; d.Name == name && d.Het == 0 {
			return d
		}
	}
	return nil
}

// Live reports whether the script is meant for sbatch: it has a live directive,
// or Slurm itself says that it ran it.
func (s *Script) Live() bool { return s.Batch || len(s.Directives) > 0 || len(s.Refused) > 0 }

// Var returns the assignment of a variable that is in force at a place in the
// order of execution, in the batch shell, or nil.
func (s *Script) Var(name string, seq int) *Assign {
	for i := len(s.Assigns) - 1; i >= 0; i-- {
		if a := &s.Assigns[i]; a.Name == name && a.Seq < seq && !a.Prefix && !a.Dead && !a.Bare {
			return a
		}
	}
	return nil
}

// Exported reports whether a variable is exported by the script at a place in
// the order of execution.
func (s *Script) Exported(name string, seq int) bool {
	for i := len(s.Assigns) - 1; i >= 0; i-- {
		if a := &s.Assigns[i]; a.Name == name && a.Seq < seq && a.Export && !a.Dead {
			return true
		}
	}
	return false
}

// Option reports whether a shell option is on at a place in the order of
// execution of the batch shell.
func (s *Script) Option(name string, seq int) bool {
	on := len(name) == 1 && strings.Contains(s.ShellFlags, name)
	for i := range s.Sets {
		if x := &s.Sets[i]; x.Name == name && x.Seq < seq && !x.Sub && x.Step < 0 {
			on = x.On
		}
	}
	return on
}

// Bounds returns the numbers that a value can be: digits, and holes that have
// bounds or a fixed width.
func (s *Script) Bounds(v string) (lo, hi int64, ok bool) {
	if hs := s.HolesOf(v); len(hs) == 1 && len([]rune(v)) == 1 && hs[0].Range {
		return hs[0].Lo, hs[0].Hi, true
	}
	const big = int64(1) << 40
	for _, r := range v {
		switch i := int(r) - HoleBase; {
		case r >= '0' && r <= '9':
			lo, hi = lo*10+int64(r-'0'), hi*10+int64(r-'0')
		case i >= 0 && i < len(s.Holes) && s.Holes[i].Width > 0:
			m := int64(1)
			for range s.Holes[i].Width {
				m *= 10
			}
			lo, hi = lo*m, hi*m+m-1
		default:
			return 0, 0, false
		}
		if hi > big {
			return 0, 0, false
		}
	}
	return lo, hi, v != ""
}
