package recorded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/ncclinic/ncclinic/internal/source"
)

// Command is one recorded answer.
type Command struct {
	Name   string // base name, as LookPath takes it
	Path   string // where it lies, from "# path"; default /usr/bin/NAME
	Args   string // arguments with one blank between them
	Prefix bool   // Args is only how they begin
	Result source.Result
	Hang   bool // it never answers: every call hits its time limit
}

// Parse reads a file of cmd. The first line is "$ COMMAND LINE", as it would
// be typed; a trailing "*" stands for any further text. Then come settings:
//
//	# exit 9
//	# hang
//	# millis 230
//	# path /opt/bin/nvidia-smi
//
// and then the output as it was. A line "# stderr" in the output turns over to
// the error stream.
func Parse(text string) (Command, error) {
	var c Command
	first, rest, _ := strings.Cut(text, "\n")
	line, ok := strings.CutPrefix(strings.TrimRight(first, "\r"), "$ ")
	if !ok {
		return c, errors.New(`the first line is not "$ command"`)
	}
	line, c.Prefix = strings.CutSuffix(line, "*")
	name, args, _ := strings.Cut(line, " ")
	c.Name, c.Args = path.Base(name), args
	if c.Path = name; !strings.HasPrefix(name, "/") {
		c.Path = "/usr/bin/" + c.Name
	}
	for {
		l, after, more := strings.Cut(rest, "\n")
		word, val, _ := strings.Cut(strings.TrimPrefix(l, "# "), " ")
		if !strings.HasPrefix(l, "# ") || word == "stderr" {
			break
		}
		var err error
		switch word {
		case "exit":
			c.Result.Code, err = strconv.Atoi(val)
		case "hang":
			c.Hang = true
		case "millis":
			var n int
			n, err = strconv.Atoi(val)
			c.Result.Wall = time.Duration(n) * time.Millisecond
		case "path":
			c.Path = val
		default:
			err = fmt.Errorf("unknown setting %q", word)
		}
		if err != nil {
			return c, err
		}
		rest = after
		if !more {
			break
		}
	}
	out, errs, has := strings.Cut(rest, "# stderr\n")
	c.Result.Stdout = []byte(out)
	if has {
		c.Result.Stderr = []byte(errs)
	}
	return c, nil
}

// Runner answers with recorded output.
type Runner struct{ cmds []Command }

func newRunner(fsys fs.FS, _ string) (*Runner, error) {
	ents, err := fs.ReadDir(fsys, "cmd")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := &Runner{}
	for _, e := range ents {
		b, err := source.ReadFile(fsys, "cmd/"+e.Name(), maxSmall)
		if err != nil {
			return nil, err
		}
		c, err := Parse(string(b))
		if err != nil {
			return nil, fmt.Errorf("cmd/%s: %w", e.Name(), err)
		}
		r.cmds = append(r.cmds, c)
	}
	return r, nil
}

// LookPath implements source.Runner: only recorded commands exist.
func (r *Runner) LookPath(name string) (string, error) {
	for _, c := range r.cmds {
		if c.Name == name || c.Path == name {
			return c.Path, nil
		}
	}
	return "", &fs.PathError{Op: "exec", Path: name, Err: fs.ErrNotExist}
}

// Run implements source.Runner. A command line that was not recorded is an error.
func (r *Runner) Run(ctx context.Context, c source.Cmd) (source.Result, error) {
	if err := ctx.Err(); err != nil {
		return source.Result{}, err
	}
	args := strings.Join(c.Args, " ")
	var best *Command
	for i := range r.cmds {
		k := &r.cmds[i]
		if k.Path != c.Path && k.Name != c.Path {
			continue
		}
		if k.Args == args && !k.Prefix {
			best = k
			break
		}
		if k.Prefix && strings.HasPrefix(args, k.Args) && (best == nil || len(k.Args) > len(best.Args)) {
			best = k
		}
	}
	if best == nil {
		return source.Result{}, fmt.Errorf("%s %s: not recorded", c.Path, args)
	}
	if best.Hang {
		return source.Result{Code: -1, TimedOut: true, Wall: c.Limit()}, nil
	}
	res := best.Result
	if n := c.MaxBytes(); len(res.Stdout) > n {
		res.Stdout, res.Truncated = res.Stdout[:n], true
	}
	return res, nil
}
