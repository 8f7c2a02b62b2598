// Package diag judges facts: it runs rules over a fact.Bundle, orders what they
// find and names one cause. It holds ids and arguments, never prose, so that one
// report can be shown in every language.
package diag

import "github.com/ncclinic/ncclinic/internal/fact"

// ReportSchema names the layout of a Report. Ids and the schema only grow.
const ReportSchema = "ncclinic.report/v1"

// Verdicts.
const (
	OK      = "ok"
	Warned  = "warning"
	Broken  = "broken"
	Unknown = "unknown"
)

// NoOutput is the variant of an undecided finding about text in which nothing is
// known from jobs.
const NoOutput = "no-output"

// CutOff is the variant of an undecided finding about a log that ends in the
// middle of the work without a word about why.
const CutOff = "cut-off"

// Role of a finding.
type Role string

const (
	Cause        Role = "cause"
	Contributing Role = "contributing"
	Symptom      Role = "symptom"
	Context      Role = "context"
)

// Severity of a finding.
type Severity string

const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Note    Severity = "note"
)

// Certainty of a finding.
type Certainty string

const (
	Proven   Certainty = "proven"
	Likely   Certainty = "likely"
	Possible Certainty = "possible"
)

// Args fill the {placeholders} of a rule's texts. Keys are [a-z][a-z0-9_]*.
type Args map[string]string

// Where is a place that a finding is about. Rank is nil and Node "" when the
// input does not tell.
type Where struct {
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	Col  int    `json:"col,omitempty"`
	Node string `json:"node,omitempty"`
	Rank *int   `json:"rank,omitempty"`
}

// Finding is one thing that a rule found. ID is the cause's id for causes and
// the rule's own id otherwise; Rule is the rule that found it, whose text
// explains this instance.
type Finding struct {
	ID        string          `json:"id"`
	Rule      string          `json:"rule,omitempty"`
	Cause     string          `json:"cause,omitempty"` // for lint findings: the cause they lead to
	Role      Role            `json:"role"`
	Severity  Severity        `json:"severity"`
	Certainty Certainty       `json:"certainty"`
	Actor     string          `json:"actor"`
	Args      Args            `json:"args"`
	Where     []Where         `json:"where"`
	Evidence  []fact.Evidence `json:"evidence"`
	Explains  []string        `json:"explains"`           // ids of findings of this report that are folded under it
	Suggests  []string        `json:"suggests,omitempty"` // of an undecided failure: ids of the causes that it may have, likeliest first
	Needs     []string        `json:"needs"`              // commands that would decide what is not proven
	Fixes     []Fix           `json:"fixes"`
	Count     int             `json:"count"`

	stage int // of the rule: what happens first in a job's life comes first
	order int
}

// Fix kinds.
const (
	FixCommand = "command"
	FixEdit    = "edit"
	FixSetting = "setting"
	FixAsk     = "ask"
)

// Fix is one way out. Commands are printed, never run. The note's text is
// found by rule and ID in the knowledge base.
type Fix struct {
	ID       string   `json:"id"`
	Kind     string   `json:"kind"`
	Safe     bool     `json:"safe"`
	Commands []string `json:"commands"`
}

// Ran says what became of one rule: hit, clean, skipped (why) or failed (why).
type Ran struct {
	Rule   string `json:"rule"`
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

// Statuses of Ran.
const (
	Hit     = "hit"
	Clean   = "clean"
	Skipped = "skipped"
	RFailed = "failed"
)

// Report is the outcome of one examination.
type Report struct {
	Schema   string         `json:"schema"`
	Tool     string         `json:"tool"`
	Rules    string         `json:"rules"`
	Subject  fact.Subject   `json:"subject"`
	Verdict  string         `json:"verdict"`
	Cause    *string        `json:"cause"`
	Findings []Finding      `json:"findings"`
	Ran      []Ran          `json:"ran"`
	Problems []fact.Problem `json:"problems"`
	Nodes    *NodesReport   `json:"nodes,omitempty"` // of an allocation
	Job      *fact.Job      `json:"job,omitempty"`   // what the scheduler says, when the subject is a job
}

// Top returns the finding that the verdict names, or nil.
func (r *Report) Top() *Finding {
	if r.Cause == nil {
		return nil
	}
	for i := range r.Findings {
		if r.Findings[i].Role == Cause && r.Findings[i].ID == *r.Cause {
			return &r.Findings[i]
		}
	}
	return nil
}

// ExitCode is the process's exit status: 0 nothing wrong, 1 a problem was
// found, 3 could not decide. (2, wrong usage or unreadable input, is the
// caller's.)
func (r *Report) ExitCode() int {
	switch r.Verdict {
	case OK:
		return 0
	case Unknown:
		return 3
	}
	return 1
}
