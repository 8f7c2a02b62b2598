// Package script reads batch scripts: the directives exactly as sbatch takes
// them from the bytes, and the body as its shell would run it, followed as far
// as constants go. Nothing is executed. It is pure: no file is opened unless
// Options.Open does it.
package script

import (
	"mvdan.cc/sh/v3/syntax"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// Options of Parse.
type Options struct {
	// Open returns a file that stands beside the script, named as the script
	// names it; nil: no file is followed.
	Open func(path string) ([]byte, error)
	// BlankEnds makes a blank end a word of a directive even behind a backslash,
	// as Slurm 22.05 does; later sources take "\ " into the word.
	BlankEnds bool
	// Batch says that Slurm ran the script as a job's.
	Batch bool
	// DirectivesOnly leaves the body alone.
	DirectivesOnly bool
}

// MaxSize bounds what is parsed as shell. sbatch itself takes at most 4 MiB by
// default (max_script_size); of more, the directives are still read.
const MaxSize = 8 << 20

// parser holds one run of Parse.
type parser struct {
	s    *fact.Script
	o    Options
	n    int // order of execution
	cost int // work done so far, see maxCost

	printer *syntax.Printer // made when it is needed
	levels  map[int]int     // level of commands in substitutions, by index
	src     string          // the body as it was parsed
	made    map[string]int  // files that the script writes with a heredoc: index in Heredocs
	follow  int             // depth of followed files
	sourced bool            // something that could not be followed may have set variables
	strings [][2]int        // lines of strings that span several
}

// Parse reads a script. It never fails: what could not be understood is said in
// the script's fields.
func Parse(name string, src []byte, o Options) *fact.Script {
	p := &parser{s: &fact.Script{Name: name, Src: src, Batch: o.Batch}, o: o, made: map[string]int{}, levels: map[int]int{}}
	reuse(p.s)
	p.scan()
	p.request()
	if !o.DirectivesOnly {
		p.body()
	}
	return p.s
}
