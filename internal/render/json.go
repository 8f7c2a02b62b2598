package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"sync"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// The report contract: schema diag.ReportSchema. Ids are never translated;
// title, message and note are in the language that was asked for.
type jsonReport struct {
	Schema   string         `json:"schema"`
	Tool     string         `json:"tool"`
	Rules    string         `json:"rules"`
	Subject  fact.Subject   `json:"subject"`
	Verdict  string         `json:"verdict"`
	Cause    *string        `json:"cause"`
	Findings []jsonFinding  `json:"findings"`
	Ran      []diag.Ran     `json:"ran"`
	Problems []fact.Problem `json:"problems"`

	Nodes *diag.NodesReport `json:"nodes,omitempty"`
	Job   *fact.Job         `json:"job,omitempty"`
}

type jsonFinding struct {
	ID        string          `json:"id"`
	Rule      string          `json:"rule,omitempty"`
	Cause     string          `json:"cause,omitempty"`
	Role      diag.Role       `json:"role"`
	Severity  diag.Severity   `json:"severity"`
	Certainty diag.Certainty  `json:"certainty"`
	Actor     string          `json:"actor"`
	Title     string          `json:"title"`
	Message   string          `json:"message"`
	Args      diag.Args       `json:"args"`
	Where     []diag.Where    `json:"where"`
	Evidence  []fact.Evidence `json:"evidence"`
	Explains  []string        `json:"explains"`
	Suggests  []string        `json:"suggests,omitempty"`
	Needs     []string        `json:"needs"`
	Fixes     []jsonFix       `json:"fixes"`
	Count     int             `json:"count"`
}

type jsonFix struct {
	ID       string   `json:"id"`
	Kind     string   `json:"kind"`
	Safe     bool     `json:"safe"`
	Commands []string `json:"commands"`
	Note     string   `json:"note"`
}

// JSON writes a report by the contract, indented, with a final newline.
func JSON(w io.Writer, rep *diag.Report, t diag.Texts, lang string) error {
	out := jsonReport{Schema: rep.Schema, Tool: rep.Tool, Rules: rep.Rules, Subject: rep.Subject, Verdict: rep.Verdict,
		Cause: rep.Cause, Findings: []jsonFinding{}, Ran: rep.Ran, Problems: rep.Problems, Nodes: rep.Nodes, Job: rep.Job}
	var doc bytes.Buffer
	if err := encode(&doc, out, ""); err != nil {
		return err
	}
	w = &asciiControls{w: w}
	if len(rep.Findings) == 0 {
		_, err := w.Write(doc.Bytes())
		return err
	}
	// The lint of a folder has thousands of findings: they are written at once,
	// as many parts as there are CPUs, and put where the empty list stands. No
	// string of the document has a line break, so only the list itself matches.
	const empty = "\n \"findings\": []"
	before, after, ok := bytes.Cut(doc.Bytes(), []byte(empty))
	if !ok {
		return errors.New("the report has no list of findings") // would be our own fault
	}
	n := max(min(runtime.GOMAXPROCS(0), len(rep.Findings)/32), 1)
	parts, errs := make([]bytes.Buffer, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			errs[i] = findings(&parts[i], rep.Findings[len(rep.Findings)*i/n:len(rep.Findings)*(i+1)/n], t, lang)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	pieces := [][]byte{before, []byte(empty[:len(empty)-1])}
	for i := range parts {
		p := parts[i].Bytes()
		if i == 0 {
			p = p[1:] // no comma before the first
		}
		pieces = append(pieces, p)
	}
	for _, p := range append(pieces, []byte("\n ]"), after) {
		if _, err := w.Write(p); err != nil {
			return err
		}
	}
	return nil
}

// findings writes elements of the list of findings, each after a comma.
func findings(b *bytes.Buffer, fs []diag.Finding, t diag.Texts, lang string) error {
	for i := range fs {
		f := &fs[i]
		jf := jsonFinding{ID: f.ID, Rule: f.Rule, Cause: f.Cause, Role: f.Role, Severity: f.Severity, Certainty: f.Certainty,
			Actor: f.Actor, Title: diag.Title(t, f, lang), Message: diag.Message(t, f, lang), Args: f.Args, Where: f.Where,
			Evidence: f.Evidence, Explains: f.Explains, Suggests: f.Suggests, Needs: f.Needs, Fixes: []jsonFix{}, Count: f.Count}
		for _, x := range f.Fixes {
			jf.Fixes = append(jf.Fixes, jsonFix{ID: x.ID, Kind: x.Kind, Safe: x.Safe, Commands: x.Commands,
				Note: diag.Section(t, f, "fix:"+x.ID, lang)})
		}
		b.WriteString(",\n  ")
		if err := encode(b, jf, "  "); err != nil {
			return err
		}
		b.Truncate(b.Len() - 1) // the line break that Encode adds
	}
	return nil
}

func encode(w io.Writer, v any, prefix string) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent(prefix, " ")
	return e.Encode(v)
}
