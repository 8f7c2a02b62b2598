package explain

import (
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

func noBackendEvents(xs []*fact.Exception) []*fact.Event {
	var es []*fact.Event
	for _, x := range xs {
		es = append(es, &fact.Event{Place: x.Place, Text: x.Type + ": " + x.Message, Rule: ""})
	}
	return es
}

func (v *view) excWith(words ...string) []*fact.Exception {
	var out []*fact.Exception
	for _, x := range v.exc {
		for _, w := range words {
			if strings.Contains(x.Message, w) {
				out = append(out, x)
				break
			}
		}
	}
	return out
}

// addExc notes a candidate from an exception (and an event that may be nil).
func (v *view) addExc(c cand, x *fact.Exception, es ...*fact.Event) *cand {
	if x != nil {
		if c.at.Line == 0 {
			c.at = x.Place
		}
		c.ev = append(c.ev, v.excEvidence(x)...)
		c.where = append(c.where, v.where(x.Place))
		if c.args == nil {
			c.args = diag.Args{}
		}
		if c.args["exception"] == "" {
			c.args["exception"] = x.Type
			c.args["message"] = fact.Clip(x.Message, 200)
		}
		if f := userFrame(x); f.File != "" && c.args["frame_file"] == "" {
			c.args["frame_file"], c.args["frame_line"] = f.File, strconv.Itoa(f.Line)
		}
	}
	var live []*fact.Event
	for _, e := range es {
		if e != nil {
			live = append(live, e)
		}
	}
	return v.add(c, live...)
}

func (v *view) excEvidence(x *fact.Exception) []fact.Evidence {
	out := []fact.Evidence{v.evidence(x.Place, fact.Clip(x.Type+": "+x.Message, 400))}
	if f := userFrame(x); f.File != "" {
		e := v.evidence(x.Place, `File "`+f.File+`", line `+strconv.Itoa(f.Line)+inFunc(f.Func)+codeOf(f.Code))
		if x.Start > 0 {
			e.Line = x.Start
		}
		out = append(out, e)
	}
	return out
}

func inFunc(f string) string {
	if f == "" {
		return ""
	}
	return ", in " + f
}

func codeOf(c string) string {
	if c == "" {
		return ""
	}
	return ": " + c
}

// userFrame returns the last frame of the program's own code, else the last one.
func userFrame(x *fact.Exception) fact.Frame {
	for i := len(x.Frames) - 1; i >= 0; i-- {
		f := x.Frames[i].File
		if !strings.Contains(f, "/site-packages/") && !strings.Contains(f, "/dist-packages/") && !strings.Contains(f, "/lib/python") && !strings.HasPrefix(f, "<frozen") && !strings.Contains(f, `\site-packages\`) {
			return x.Frames[i]
		}
	}
	if n := len(x.Frames); n > 0 {
		return x.Frames[n-1]
	}
	return fact.Frame{}
}

// extFrame returns the extension package in whose code the exception was raised, "" for torch itself.
func extFrame(x *fact.Exception) string {
frames:
	for i := len(x.Frames) - 1; i >= 0; i-- {
		f := x.Frames[i].File
		for _, sep := range []string{"/site-packages/", "/dist-packages/"} {
			if j := strings.Index(f, sep); j >= 0 {
				p := f[j+len(sep):]
				if k := strings.IndexByte(p, '/'); k > 0 {
					p = p[:k]
				}
				p = strings.TrimSuffix(p, ".py")
				if p == "torch" {
					if i == len(x.Frames)-1 && !strings.Contains(f, "/autograd/") && !strings.Contains(f, "_tensor.py") && !strings.Contains(f, "/_ops.py") && !strings.Contains(f, "/nn/modules/module.py") && !strings.Contains(f, "/utils/_contextlib.py") {
						return ""
					}
					continue frames // torch calls back into the extension: the caller stands above
				}
				return p
			}
		}
		return ""
	}
	return ""
}

func (v *view) excAt(e *fact.Event) *fact.Exception {
	for i := range v.l.Exceptions {
		x := &v.l.Exceptions[i]
		for _, k := range x.Sigs {
			if k < len(v.l.Events) && &v.l.Events[k] == e {
				return x
			}
		}
		if x.File == e.File && x.Line == e.Line {
			return x
		}
	}
	return nil
}
