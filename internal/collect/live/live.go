// Package live asks the job's own interpreter what it imports: the only part of
// ncclinic that runs what it examines, and only when the user says --live.
package live

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
)

//go:embed probe.py
var probe string

// marker starts a line of the probe; anything else on standard output is the
// chatter of other modules.
const marker = "ncclinic-live-1 "

// DefaultTimeout is long because importing torch from a cold parallel file
// system takes a minute.
const DefaultTimeout = 120 * time.Second

// States of fact.Live.
const (
	OK           = "ok"
	ImportFailed = "import-failed"
	Timeout      = "timeout"
	Crashed      = "crashed" // the interpreter ended without finishing, by a signal for one
	NoAnswer     = "no-answer"
)

const maxOut = 4 << 20

// Ask runs python once with the probe and fills b.Live. An interpreter that
// cannot be started, hangs, crashes or prints nonsense is a state, not an error.
func Ask(ctx context.Context, m *source.Machine, python string, timeout time.Duration, b *fact.Bundle) error {
	if m.Runner == nil {
		return errors.New("nothing can be run here")
	}
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	// Through "-c", not a file: a file would have to be put somewhere first, and
	// that folder would come before all others on sys.path.
	res, err := m.Runner.Run(ctx, source.Cmd{Path: python, Args: []string{"-c", probe}, Timeout: timeout, MaxOut: maxOut})
	at := fact.Evidence{Source: fact.SrcLive, Path: python}
	l := &b.Live
	if err != nil {
		l.State = fact.Fail[string](err.Error(), at)
		l.Error = fact.Clip(err.Error(), 500)
		return nil
	}
	fill(l, res, timeout, at)
	return nil
}

type answer struct {
	Steps       []string          `json:"steps"`
	Errors      map[string]string `json:"errors"`
	File        *string           `json:"file"`
	Version     *string           `json:"version"`
	CUDA        *string           `json:"cuda"`
	HIP         *string           `json:"hip"`
	Distributed *bool             `json:"distributed"`
	NCCL        *bool             `json:"nccl"`
	Gloo        *bool             `json:"gloo"`
	NCCLVersion *string           `json:"ncclVersion"`
	Devices     *int              `json:"devices"`
	Archs       []string          `json:"archs"`
	GlooGroup   *string           `json:"glooGroup"`
	SysPath     []string          `json:"sysPath"`
	Python      string            `json:"python"`
}

// fill turns the output of the probe into facts.
func fill(l *fact.Live, res source.Result, timeout time.Duration, at fact.Evidence) {
	l.Seconds = float64(res.Wall.Milliseconds()) / 1000
	a, ok := parse(res.Stdout)
	last := ""
	if ok && len(a.Steps) > 0 {
		last = a.Steps[len(a.Steps)-1]
	}
	finished := last == "done"
	importErr := a.Errors["import"]
	trouble := lastLine(res.Stderr)
	switch {
	case finished && importErr == "":
		l.State = fact.Of(OK, at)
	case finished:
		l.State = fact.Of(ImportFailed, at.WithExcerpt(fact.Clip(importErr, 200)))
		l.Error = fact.Clip(clean(importErr), 500)
	case res.TimedOut:
		l.State = fact.Of(Timeout, at)
		l.Error = fmt.Sprintf("no end within %s", timeout)
		if last != "" {
			l.Error += " (in step " + fact.Clip(clean(last), 40) + ")"
		}
	case ok:
		l.State = fact.Of(Crashed, at)
		l.Error = fmt.Sprintf("ended in step %s with status %d", fact.Clip(clean(last), 40), res.Code)
		if trouble != "" {
			l.Error += ": " + trouble
		}
	default:
		l.State = fact.Of(NoAnswer, at)
		l.Error = fmt.Sprintf("printed nothing of the probe, status %d", res.Code)
		if trouble != "" {
			l.Error += ": " + trouble
		}
		return
	}
	says := func(what string) fact.Evidence { return at.WithExcerpt(what) }
	str(&l.File, a.File, says("torch.__file__"))
	str(&l.Version, a.Version, says("torch.__version__"))
	if imported := a.File != nil || a.Version != nil; imported {
		orNone(&l.CUDA, a.CUDA, says("torch.version.cuda"))
		orNone(&l.HIP, a.HIP, says("torch.version.hip"))
	}
	val(&l.Distributed, a.Distributed, says("torch.distributed.is_available()"))
	val(&l.NCCL, a.NCCL, says("torch.distributed.is_nccl_available()"))
	val(&l.Gloo, a.Gloo, says("torch.distributed.is_gloo_available()"))
	if a.Distributed != nil && !*a.Distributed { // without it there are no backends
		l.NCCL, l.Gloo = fact.Of(false, l.Distributed.At), fact.Of(false, l.Distributed.At)
	}
	str(&l.NCCLVersion, a.NCCLVersion, at)
	val(&l.Devices, a.Devices, at)
	if a.Archs != nil {
		l.Archs = fact.Of(cleanAll(a.Archs), at)
	}
	str(&l.GlooGroup, a.GlooGroup, at)
	for name, v := range map[string]func(string){
		"ncclVersion": func(e string) { l.NCCLVersion = fact.Fail[string](e, at) },
		"devices":     func(e string) { l.Devices = fact.Fail[int](e, at) },
		"archs":       func(e string) { l.Archs = fact.Fail[[]string](e, at) },
		"distributed": func(e string) { l.Distributed = fact.Fail[bool](e, at) },
		"backends":    func(e string) { l.NCCL = fact.Fail[bool](e, at) },
		"glooGroup":   func(e string) { l.GlooGroup = fact.Of(e, at) },
	} {
		if e := a.Errors[name]; e != "" {
			v(fact.Clip(clean(e), 500))
		}
	}
	l.SysPath = cleanAll(a.SysPath)
}

// parse returns the last line of the probe that is whole. A later one of
// somebody who prints the marker too would have to be JSON of this very form.
func parse(out []byte) (answer, bool) {
	var a answer
	found := false
	for len(out) > 0 {
		line := out
		if i := bytes.IndexByte(out, '\n'); i >= 0 {
			line, out = out[:i], out[i+1:]
		} else {
			out = nil
		}
		rest, ok := bytes.CutPrefix(line, []byte(marker))
		if !ok {
			continue
		}
		var next answer
		if json.Unmarshal(rest, &next) == nil && len(next.Steps) > 0 {
			a, found = next, true
		}
	}
	return a, found
}

func val[T any](v *fact.Val[T], p *T, at fact.Evidence) {
	if p != nil {
		*v = fact.Of(*p, answered(at, fmt.Sprint(*p)))
	}
}

func str(v *fact.Val[string], p *string, at fact.Evidence) {
	if p != nil {
		*v = fact.Of(clean(*p), answered(at, fact.Clip(clean(*p), 200)))
	}
}

// answered is the evidence of an answer: what was asked, which the excerpt
// names already, and what torch said, in Python's spelling.
func answered(at fact.Evidence, v string) fact.Evidence {
	switch v {
	case "true":
		v = "True"
	case "false":
		v = "False"
	}
	if at.Excerpt != "" {
		v = at.Excerpt + " = " + v
	}
	return at.WithExcerpt(v)
}

// orNone: what torch says to be None is Absent.
func orNone(v *fact.Val[string], p *string, at fact.Evidence) {
	if p == nil {
		*v = fact.None[string](answered(at, "None"))
		return
	}
	str(v, p, at)
}

// lastLine of the error stream: the message of an exception, or what a crash said.
func lastLine(b []byte) string {
	s := strings.TrimSpace(string(b))
	return fact.Clip(clean(strings.TrimSpace(s[strings.LastIndexByte(s, '\n')+1:])), 300)
}

// clean drops control characters: what is shown must not steer a terminal.
func clean(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '\n' || c == '\t':
			return ' '
		case c < ' ' || c == 0x7f:
			return -1
		}
		return c
	}, strings.ToValidUTF8(s, "?"))
}

func cleanAll(in []string) []string {
	out := make([]string, 0, min(len(in), 256))
	for _, s := range in {
		if len(out) == 256 {
			break
		}
		out = append(out, fact.Clip(clean(s), 1000))
	}
	return out
}
