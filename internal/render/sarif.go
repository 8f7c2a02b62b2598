package render

import (
	"encoding/json"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
)

// SARIF writes a report as a SARIF 2.1.0 log, so that CI can show a cause on
// the line of the log or script that proves it.
func SARIF(w io.Writer, rep *diag.Report, t diag.Texts, lang string) error {
	type m = map[string]any
	text := func(s string) m { return m{"text": Clean(s, true)} }
	var rules []m
	index := map[string]int{}
	results := []m{}
	for i := range rep.Findings {
		f := &rep.Findings[i]
		if f.Role == diag.Symptom || f.Role == diag.Context && f.ID != "unknown" {
			continue
		}
		k, ok := index[f.ID]
		if !ok {
			k = len(rules)
			index[f.ID] = k
			r := m{"id": f.ID, "shortDescription": text(diag.Title(t, f, lang)), "defaultConfiguration": m{"level": sarifLevel(f.Severity)}}
			if why := diag.Section(t, f, "why", lang); why != "" {
				help := why
				for _, fx := range f.Fixes {
					if note := diag.Section(t, f, "fix:"+fx.ID, lang); note != "" {
						help += "\n\n" + note
					}
				}
				r["fullDescription"], r["help"] = text(why), text(help)
			}
			rules = append(rules, r)
		}
		msg := diag.Title(t, f, lang)
		if x := diag.Message(t, f, lang); x != "" {
			msg += "\n" + x
		}
		for _, n := range f.Needs {
			mark := "\n- "
			if diag.IsCommand(n) {
				mark = "\n$ "
			}
			msg += mark + diag.NeedText(n, lang)
		}
		res := m{"ruleId": f.ID, "ruleIndex": k, "level": sarifLevel(f.Severity), "kind": "fail", "message": text(msg),
			"properties": m{"role": f.Role, "certainty": f.Certainty, "args": f.Args}}
		var locs, rel []m
		for _, e := range f.Evidence {
			if e.Path == "" {
				continue
			}
			phys := m{"artifactLocation": m{"uri": fileURI(e.Path)}}
			if e.Line > 0 {
				reg := m{"startLine": e.Line}
				if e.Col > 0 {
					reg["startColumn"] = e.Col
				}
				if e.Excerpt != "" {
					reg["snippet"] = text(e.Excerpt)
				}
				phys["region"] = reg
			}
			l := m{"physicalLocation": phys}
			if len(locs) == 0 {
				locs = append(locs, l)
				continue
			}
			l["id"] = len(rel) + 1
			if e.Excerpt != "" {
				l["message"] = text(e.Excerpt)
			}
			rel = append(rel, l)
		}
		if locs == nil {
			locs = []m{}
		}
		res["locations"] = locs
		if len(rel) > 0 {
			res["relatedLocations"] = rel
		}
		results = append(results, res)
	}
	if rules == nil {
		rules = []m{}
	}
	run := m{"tool": m{"driver": m{"name": "ncclinic", "version": rep.Tool, "rules": rules}}, "results": results,
		"columnKind": "unicodeCodePoints", "properties": m{"verdict": rep.Verdict}}
	var notes []m
	for _, p := range rep.Problems {
		notes = append(notes, m{"level": "warning", "message": text(p.What + ": " + p.Why)})
	}
	if len(notes) > 0 {
		run["invocations"] = []m{{"executionSuccessful": true, "toolExecutionNotifications": notes}}
	}
	enc := json.NewEncoder(ControlFree(w))
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(m{"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": []m{run}})
}

func sarifLevel(s diag.Severity) string {
	switch s {
	case diag.Error:
		return "error"
	case diag.Warning:
		return "warning"
	}
	return "note"
}

// fileURI turns a path into what SARIF wants: relative ones stay relative.
func fileURI(p string) string {
	p = filepath.ToSlash(p)
	u := url.URL{Path: p}
	if strings.HasPrefix(p, "/") {
		u.Scheme = "file"
	}
	return u.String()
}
