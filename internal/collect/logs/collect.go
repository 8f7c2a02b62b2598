package logs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/ncclinic/ncclinic/internal/collect/script"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// Input is one thing to read.
type Input struct {
	Path string // as people named it
	Open func() (io.ReadCloser, error)
	// Limit, when not 0, is lower than that of Options: for streams without an end.
	Limit int64
	Node  string // host that wrote it; "": not told
	Task  *int   // task of a step that wrote it; nil: not told
	// Batch says that it is the batch script of the job, whatever it looks like:
	// one without directives, or what sbatch --wrap made.
	Batch bool
}

// Collect reads all inputs. What cannot be read is a problem of the result;
// an error means that nothing could be read at all.
func Collect(ctx context.Context, ins []Input, o Options) (*fact.Logs, error) {
	out := &fact.Logs{}
	r := newReader(newEngine(o.Signatures), o, out)
	limit := o.Limit
	if limit <= 0 {
		limit = DefaultLimit
	}
	read := 0
	for _, in := range ins {
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		r.begin(in)
		l := limit
		if in.Limit > 0 && in.Limit < l {
			l = in.Limit
		}
		if err := r.open(ctx, in, l); err != nil {
			out.Problems = append(out.Problems, fact.Problem{What: in.Path, Why: r.mask(err.Error())})
			out.Files[r.file].Broken = !errors.Is(err, errBinary)
			if out.Files[r.file].Bytes == 0 && !errors.Is(err, errBinary) {
				r.end()
				continue
			}
		}
		if out.Files[r.file].Cut {
			out.Problems = append(out.Problems, fact.Problem{What: in.Path, Why: fmt.Sprintf("reading stopped after the limit, in bytes (--limit): %d", l)})
		}
		read++
		r.end()
	}
	r.finish()
	if read == 0 && len(ins) > 0 {
		return out, errors.New("no input could be read")
	}
	return out, nil
}

func (r *reader) open(ctx context.Context, in Input, limit int64) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("reader failed: %v", p)
		}
	}()
	f, err := in.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	if r.in == nil {
		r.in = bufio.NewReaderSize(nil, 64<<10)
	}
	text, err := decode(f, r.in)
	if err != nil {
		return err
	}
	return r.scanFile(ctx, text, limit)
}

// textKind tells scripts and programs from logs by name and content.
func textKind(p string, sample []byte) string {
	name := strings.ToLower(path.Base(strings.ReplaceAll(p, "\\", "/")))
	ext := path.Ext(name)
	head := string(sample[:min(len(sample), 16<<10)])
	switch {
	case ext == ".py":
		return fact.KindSource
	case strings.HasPrefix(head, "#!"):
		first, rest, _ := strings.Cut(head, "\n")
		if strings.Contains(first, "python") {
			return fact.KindSource
		}
		if strings.Contains(first, "sh") && !strings.Contains(rest, "\nTraceback (most recent") {
			return fact.KindScript
		}
	case ext == ".sh" || ext == ".sbatch" || ext == ".slurm" || ext == ".bash" || ext == ".job" || ext == ".csh":
		return fact.KindScript
	}
	n := 0
	for i, l := range strings.SplitN(head, "\n", 40) {
		if strings.HasPrefix(l, "#SBATCH") && i < 39 {
			n++
		}
	}
	if n >= 2 && strings.HasPrefix(strings.TrimSpace(head), "#") && !strings.Contains(head, "Traceback") {
		return fact.KindScript
	}
	if ext == "" || ext == ".txt" {
		imports := strings.Count("\n"+head, "\nimport ") + strings.Count("\n"+head, "\nfrom ")
		if imports >= 2 && strings.Contains(head, "\ndef ") && !strings.Contains(head, "Traceback") {
			return fact.KindSource
		}
	}
	return fact.KindLog
}

const (
	maxTexts     = 64
	maxTextLines = 4000
)

func (r *reader) keepText(kind string, b []byte) {
	if len(r.out.Texts) >= maxTexts {
		return
	}
	t := fact.SourceText{File: r.file, Kind: kind, From: 1}
	for _, l := range strings.SplitN(string(b), "\n", maxTextLines+1) {
		if len(t.Lines) == maxTextLines {
			break
		}
		if len(l) > 4096 {
			l = l[:4096]
		}
		t.Lines = append(t.Lines, r.mask(l))
	}
	if r.scripts += len(b); kind == fact.KindScript && r.scripts <= maxScripts {
		t.Script = script.Parse(r.out.Files[r.file].Path, bytes.Clone(b), script.Options{Batch: r.batch})
	}
	r.out.Texts = append(r.out.Texts, t)
}

// maxScripts bounds the bytes of all scripts that are taken apart; sbatch takes
// at most 4 MiB of one.
const maxScripts = 4 << 20

// keepShown adds a line to the script that the session shows.
func (r *reader) keepShown(no int, raw []byte) {
	t := &r.out.Texts[r.shown-1]
	if r.scripts += len(raw) + 1; no-t.From >= maxTextLines || r.scripts > maxScripts {
		return
	}
	src := r.shownSrc[r.shown-1]
	for ; len(t.Lines) < no-t.From; src = append(src, '\n') { // blank lines between
		t.Lines = append(t.Lines, "")
	}
	t.Lines = append(t.Lines, r.mask(fact.Clip(string(raw), 4096)))
	r.shownSrc[r.shown-1] = append(append(src, raw...), '\n')
}

// shownScripts takes the scripts apart that sessions show: "cat job.sh".
func (r *reader) shownScripts() {
	for i, src := range r.shownSrc {
		t := &r.out.Texts[i]
		t.Script = script.Parse(r.out.Files[t.File].Path, src, script.Options{})
	}
}

// finish ties together what stands in different places: processes and ranks,
// and the year of stamps that have none.
func (r *reader) finish() {
	out := r.out
	r.shownScripts()
	pids := map[int]fact.Exit{}
	for _, x := range out.Exits {
		if x.By == "table" && x.PID > 0 && x.Rank >= 0 {
			pids[x.PID] = x
		}
	}
	for i := range out.Exits {
		x := &out.Exits[i]
		if x.By == "torchrun" && x.Rank < 0 {
			if t, ok := pids[x.PID]; ok {
				x.Rank = t.Rank
				if x.Node == "" {
					x.Node = t.Node
				}
			}
		}
	}
	fix := func(p *fact.Place) {
		if p.Rank < 0 && p.PID > 0 {
			if v, ok := r.pidRank[fmt.Sprintf("%s:%d", p.Node, p.PID)]; ok {
				p.Rank = v
			} else if t, ok := pids[p.PID]; ok {
				p.Rank = t.Rank
			}
		}
	}
	for i := range out.Events {
		fix(&out.Events[i].Place)
	}
	for i := range out.Listing.Facts {
		fix(&out.Listing.Facts[i].Place)
	}
	r.years()
	if !r.opt.Since.IsZero() {
		dropBefore(out, r.opt.Since)
	}
}

// years gives stamps without a year the one year that the input names.
func (r *reader) years() {
	year := 0
	each := func(fn func(*fact.Place)) {
		for i := range r.out.Events {
			fn(&r.out.Events[i].Place)
		}
		for i := range r.out.Exceptions {
			fn(&r.out.Exceptions[i].Place)
		}
		for i := range r.out.Works {
			fn(&r.out.Works[i].Place)
		}
		for i := range r.out.Exits {
			fn(&r.out.Exits[i].Place)
		}
		for i := range r.out.Streams {
			fn(&r.out.Streams[i].First)
			fn(&r.out.Streams[i].Last)
		}
		for i := range r.out.Listing.Facts {
			fn(&r.out.Listing.Facts[i].Place)
		}
		for i := range r.out.Commands {
			fn(&r.out.Commands[i].Place)
		}
	}
	each(func(p *fact.Place) {
		if p.TK == fact.TimeFull {
			if y := time.UnixMilli(p.Time).UTC().Year(); y > year {
				year = y
			}
		}
	})
	if year == 0 {
		return
	}
	each(func(p *fact.Place) {
		if p.TK == fact.TimeYearless {
			t := time.UnixMilli(p.Time).UTC()
			p.Time = time.Date(year, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC).UnixMilli()
			p.TK = fact.TimeFull
		}
	})
}
