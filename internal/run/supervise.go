package run

// Ended is how a supervised command ended.
type Ended struct {
	Code   int // exit status; -1 when a signal ended it
	Signal int // signal that ended it, 0: none
	// Streams are what was kept of its output; standard output first, or one for
	// both when they are one file. Nil for a terminal, which is passed on as it is.
	Streams []Captured
	// Heard are signals that this process got itself while the command ran.
	Heard []Heard
}

// Heard is a signal that the supervisor got, and from whom.
type Heard struct {
	Signal int
	From   string // name of the sender's process, Terminal, or "" when it is not known
	All    bool   // sent to all processes of the step, or of the terminal
}

// Terminal is where a signal came from that the kernel sent: Ctrl-C.
const Terminal = "terminal"

// Stepd begins the name of the process that runs a step of Slurm's on a node.
const Stepd = "slurmstepd"

// Slurm reports that Slurm sent the signal, to all processes of the step.
func (h Heard) Slurm() bool { return h.All && h.From != Terminal }

// Got returns the signal of a number that the supervisor got itself.
func (e Ended) Got(sig int) (Heard, bool) {
	for _, h := range e.Heard {
		if h.Signal == sig {
			return h, true
		}
	}
	return Heard{}, false
}

// Captured is one stream of a supervised command.
type Captured struct {
	Name    string // stdout, stderr, output (both)
	Text    []byte
	Missing int64 // bytes between the beginning and the end that were not kept
}
