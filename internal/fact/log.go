package fact

// Logs is everything that was read from job logs, scripts and pasted listings.
// It is bounded: what repeats is counted, not kept.
type Logs struct {
	Files      []LogFile    `json:"files"`
	Events     []Event      `json:"events,omitempty"`     // hits of signatures, in order of reading
	Exceptions []Exception  `json:"exceptions,omitempty"` // Python exceptions, in order of reading
	Works      []Work       `json:"works,omitempty"`      // collectives that timed out, one per rank
	Exits      []Exit       `json:"exits,omitempty"`      // processes and tasks that ended badly, as launchers report it
	Streams    []Stream     `json:"streams,omitempty"`    // progress per file and rank
	Commands   []ShellCmd   `json:"commands,omitempty"`   // command lines of pasted sessions and set -x
	Texts      []SourceText `json:"texts,omitempty"`      // scripts and sources among the input
	Listing    Listing      `json:"listing,omitzero"`     // what listings and banners say
	Problems   []Problem    `json:"problems,omitempty"`
	Job        *Job         `json:"job,omitempty"` // what the scheduler says of the job that wrote them, nil when it was not asked
}

// Kinds of a LogFile.
const (
	KindLog     = "log"
	KindScript  = "script"  // a batch or shell script
	KindSource  = "source"  // a Python program
	KindListing = "listing" // output of pip list, env, dmesg, sacct …
	KindBinary  = "binary"  // not text; not read
	KindReport  = "report"  // nothing but reports of this program
)

// LogFile is one input.
type LogFile struct {
	Path    string `json:"path"`
	Kind    string `json:"kind"`
	Bytes   int64  `json:"bytes"` // after decompression
	Lines   int    `json:"lines"`
	Said    int    `json:"said,omitempty"`   // the last line that is not blank
	Open    bool   `json:"open,omitempty"`   // the last line has no line end
	Cut     bool   `json:"cut,omitempty"`    // reading stopped at the limit
	Broken  bool   `json:"broken,omitempty"` // reading failed on the way: half of a compressed file
	Rank    int    `json:"rank"`             // from the file's name; -1: none
	Node    string `json:"node,omitempty"`
	Labeled bool   `json:"labeled,omitempty"` // lines carry srun --label prefixes
}

// Kinds of a time stamp.
const (
	TimeNone     = iota
	TimeFull     // date with year
	TimeYearless // month and day without year
	TimeDayless  // time of day alone
	TimeRelative // seconds since boot or start
)

// Place says where a line stands and who wrote it.
type Place struct {
	File  int    `json:"file"` // index in Logs.Files
	Line  int    `json:"line"`
	Rank  int    `json:"rank"`           // global rank; -1: not known
	Local int    `json:"local"`          // local rank; -1: not known
	Task  int    `json:"task"`           // srun task that the line's label names; -1: none
	Node  string `json:"node,omitempty"` // host
	PID   int    `json:"pid,omitempty"`
	Time  int64  `json:"time,omitempty"` // milliseconds; comparable between equal TimeKinds only
	TK    uint8  `json:"tk,omitempty"`   // Time… kind
}

// Event is one hit of a signature.
type Event struct {
	Sig  string            `json:"sig"`  // S001 …
	Rule string            `json:"rule"` // id of the rule file
	Role string            `json:"role"`
	Args map[string]string `json:"args,omitempty"`
	Place
	Text   string `json:"text"`             // the line, cleaned and cut, secrets masked
	Quoted bool   `json:"quoted,omitempty"` // stands in source, help or a report: says nothing about this run
	Exc    string `json:"exc,omitempty"`    // type of the exception that carries it
	Count  int    `json:"count"`            // equal hits that are folded into this one
	After  int    `json:"after"`            // progress lines that follow it, as Exception.After
}

// Frame is one line of a Python traceback.
type Frame struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Func string `json:"func,omitempty"`
	Code string `json:"code,omitempty"`
}

// MaxFrames is how many frames of a traceback are kept, the last ones; of one with
// as many the first is not known.
const MaxFrames = 40

// Exception is one Python exception.
type Exception struct {
	Place
	Start   int     `json:"start"` // line of "Traceback"; 0: not seen
	Type    string  `json:"type"`
	Message string  `json:"message"`
	Frames  []Frame `json:"frames,omitempty"` // the last ones
	Chained bool    `json:"chained,omitempty"`
	Handled string  `json:"handled,omitempty"` // the line that says the program went on
	Quoted  bool    `json:"quoted,omitempty"`
	Sigs    []int   `json:"sigs,omitempty"` // events on its lines
	Count   int     `json:"count"`
	After   int     `json:"after"`          // progress lines of the same rank (or of any, where ranks are not named) that follow
	Rest    int     `json:"rest,omitempty"` // other lines of it that follow: not of a traceback, the launcher or a known message
}

// Work is a collective that a rank reports as timed out.
type Work struct {
	Place
	Seq       int64  `json:"seq"` // -1: not told
	Op        string `json:"op,omitempty"`
	NumelIn   int64  `json:"numelIn"` // -1: not told
	NumelOut  int64  `json:"numelOut"`
	TimeoutMS int64  `json:"timeoutMS"`
	RanMS     int64  `json:"ranMS"`
	PG        string `json:"pg,omitempty"`
	Enqueued  int64  `json:"enqueued"` // last enqueued; -1: not told
	Completed int64  `json:"completed"`
}

// Exit is the end of a process as its launcher tells it.
type Exit struct {
	Place
	By     string `json:"by"`   // torchrun, table, srun, shell, mpirun, deepspeed
	Code   int    `json:"code"` // exit status; negative: signal
	Binary string `json:"binary,omitempty"`
	Words  string `json:"words,omitempty"` // srun's: Killed, Out Of Memory, …
	Tasks  string `json:"tasks,omitempty"` // srun's task list
	First  bool   `json:"first,omitempty"` // torchrun: first observed failure
}

// Stream is the progress of one rank (or of a file without ranks).
type Stream struct {
	File  int    `json:"file"`
	Rank  int    `json:"rank"`
	Lines int    `json:"lines"` // progress lines that were seen
	First Place  `json:"first"`
	Last  Place  `json:"last"`
	Text  string `json:"text,omitempty"` // the last progress line
	// Done of Total batches, as the last line says that counts them; 0: none does.
	Done  int `json:"done,omitempty"`
	Total int `json:"total,omitempty"`
}

// ShellCmd is a command line in a pasted session or from set -x.
type ShellCmd struct {
	Place
	Text string `json:"text"`
	Host string `json:"host,omitempty"` // from the prompt
	Env  string `json:"env,omitempty"`  // (base) of the prompt
	Via  string `json:"via"`            // prompt, xtrace, launcher
}

// SourceText is a script or program among the input.
type SourceText struct {
	File  int      `json:"file"`
	Kind  string   `json:"kind"`
	Lines []string `json:"-"`
	From  int      `json:"from"` // line number of Lines[0]
	// Script is what a script says; nil for sources and what is too long. Its
	// lines count from From, and its words are as they stand: secrets are masked
	// in Lines only.
	Script *Script `json:"-"`
}

// Said is one fact of a listing with its place.
type Said struct {
	Place
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
	V    string `json:"v"`
	Aux  string `json:"aux,omitempty"`
	Text string `json:"text,omitempty"`
}

// Listing is what listings, banners and prints say, in order of reading.
type Listing struct {
	Facts []Said `json:"facts,omitempty"`
}

// All returns the facts of one kind.
func (l *Listing) All(kind string) []Said {
	var out []Said
	for _, s := range l.Facts {
		if s.Kind == kind {
			out = append(out, s)
		}
	}
	return out
}

// First returns the first fact of a kind (and name, when it is not empty).
func (l *Listing) First(kind, name string) (Said, bool) {
	for _, s := range l.Facts {
		if s.Kind == kind && (name == "" || s.Name == name) {
			return s, true
		}
	}
	return Said{}, false
}
