package fact

// Source kinds of an Evidence.
const (
	SrcFile    = "file"    // a file of the machine or of an artefact
	SrcEnv     = "env"     // an environment variable; Path is its name
	SrcCommand = "command" // output of a command; Path is the command line
	SrcScript  = "script"  // a batch script
	SrcLog     = "log"     // a log file
	SrcListing = "listing" // a pasted listing (pip list, nvidia-smi, …)
	SrcLive    = "live"    // the job's own interpreter said so
	SrcFlag    = "flag"    // the caller said so on the command line
)

// Evidence is the place where something was seen. Lines and columns count
// from 1; 0 means not known. Excerpt is quoted to people and is masked of
// secrets before it gets here.
type Evidence struct {
	Source  string `json:"source,omitempty"`
	Path    string `json:"path,omitempty"`
	Line    int    `json:"line,omitempty"`
	Col     int    `json:"col,omitempty"`
	EndCol  int    `json:"endCol,omitempty"`
	Node    string `json:"node,omitempty"`
	Rank    *int   `json:"rank,omitempty"`
	Excerpt string `json:"excerpt,omitempty"`
}

// IsZero reports whether the evidence names nothing.
func (e Evidence) IsZero() bool { return e == Evidence{} }

// File returns evidence for a file as a whole.
func File(path string) Evidence { return Evidence{Source: SrcFile, Path: path} }

// FileLine returns evidence for one line of a file.
func FileLine(path string, line int, excerpt string) Evidence {
	return Evidence{Source: SrcFile, Path: path, Line: line, Excerpt: excerpt}
}

// FileExcerpt returns evidence for something in a file that has no line, such as a symbol.
func FileExcerpt(path, excerpt string) Evidence {
	return Evidence{Source: SrcFile, Path: path, Excerpt: excerpt}
}

// EnvVarAt returns evidence for an environment variable; the excerpt is NAME=value.
func EnvVarAt(name, value string) Evidence {
	return Evidence{Source: SrcEnv, Path: name, Excerpt: name + "=" + Clip(value, 200)}
}

// Command returns evidence for the output of a command.
func Command(line, excerpt string) Evidence {
	return Evidence{Source: SrcCommand, Path: line, Excerpt: excerpt}
}

// WithExcerpt returns e with another excerpt.
func (e Evidence) WithExcerpt(s string) Evidence { e.Excerpt = s; return e }

// Clip cuts s to at most n bytes at a rune boundary and marks the cut with "…".
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}
