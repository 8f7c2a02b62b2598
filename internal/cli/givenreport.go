package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"os"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/mask"
	"github.com/ncclinic/ncclinic/internal/render"
	"github.com/ncclinic/ncclinic/rules"
)

// reports takes reports of this program (--format json) out of what the user
// named. They hold ids and arguments, so that they can be shown again, in
// another form and language; they are no logs.
func reports(args []string) (rest, paths []string) {
	for _, arg := range args {
		if startsWith(arg, `"ncclinic.report/`) {
			paths = append(paths, arg)
		} else {
			rest = append(rest, arg)
		}
	}
	return rest, paths
}

// readReport reads a report back. It comes from anywhere: secrets are masked
// again, and texts come from this program's own knowledge base.
func readReport(path string) (*diag.Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, usageError{err}
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, fact.MaxBundle+1))
	if err != nil {
		return nil, usageError{err}
	}
	if len(raw) > fact.MaxBundle {
		return nil, usagef("%s: larger than any report", path)
	}
	var rep diag.Report
	d := json.NewDecoder(bytes.NewReader(raw))
	if err := d.Decode(&rep); err != nil {
		return nil, usagef("%s: %v", path, err)
	}
	if rep.Schema != diag.ReportSchema {
		return nil, usagef("%s: schema %q, this program knows %q", path, rep.Schema, diag.ReportSchema)
	}
	switch rep.Verdict {
	case diag.OK, diag.Warned, diag.Broken, diag.Unknown:
	default:
		return nil, usagef("%s: verdict %q", path, rep.Verdict)
	}
	mask.Deep(&rep)
	rep = rep.Normal()
	return &rep, nil
}

// showAgain shows a report that was read back; its exit status is that of the report.
func (a *app) showAgain(path string, lb *rules.LogBase) error {
	rep, err := readReport(path)
	if err != nil {
		return err
	}
	base, err := a.load(rules.All...)
	if err != nil {
		return err
	}
	return a.showReport(rep, bothTexts{base, lb})
}

// showReport writes a report in the form that was asked for and returns its
// exit status.
func (a *app) showReport(rep *diag.Report, texts diag.Texts) error {
	var err error
	switch a.out.format {
	case "json":
		err = render.JSON(a.Out, rep, texts, a.lang)
	case "sarif":
		err = render.SARIF(a.Out, rep, texts, a.lang)
	default:
		var st render.Style
		if st, err = a.style(); err != nil {
			return err
		}
		o := render.TextOptions{Lang: a.lang, Style: st, Verbose: a.out.verbose, MaxEvidence: a.out.maxEvidence}
		if rep.Job != nil {
			o.Summary, o.OKTitle = a.jobSummary(rep), a.jobTitle(rep.Job)
		}
		err = render.Text(a.Out, rep, texts, o)
	}
	if err != nil {
		return err
	}
	if c := rep.ExitCode(); c != 0 {
		return exitError(c)
	}
	return nil
}
