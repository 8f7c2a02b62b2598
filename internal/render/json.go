package render

import (
	"encoding/json"
	"io"

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
	for i := range rep.Findings {
		f := &rep.Findings[i]
		jf := jsonFinding{ID: f.ID, Rule: f.Rule, Cause: f.Cause, Role: f.Role, Severity: f.Severity, Certainty: f.Certainty,
			Actor: f.Actor, Title: diag.Title(t, f, lang), Message: diag.Message(t, f, lang), Args: f.Args, Where: f.Where,
			Evidence: f.Evidence, Explains: f.Explains, Suggests: f.Suggests, Needs: f.Needs, Fixes: []jsonFix{}, Count: f.Count}
		for _, x := range f.Fixes {
			jf.Fixes = append(jf.Fixes, jsonFix{ID: x.ID, Kind: x.Kind, Safe: x.Safe, Commands: x.Commands,
				Note: diag.Section(t, f, "fix:"+x.ID, lang)})
		}
		out.Findings = append(out.Findings, jf)
	}
	e := json.NewEncoder(&asciiControls{w: w})
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(out)
}
