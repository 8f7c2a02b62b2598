package render

import (
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// Facts lists everything in a bundle, one fact a line: path, value, where it
// was seen. It walks the JSON form, so a new fact needs no code here.
func Facts(w io.Writer, b *fact.Bundle, s Style) error {
	raw, err := json.Marshal(b)
	if err != nil {
		return err
	}
	var v any
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return err
	}
	p := newPrinter(w, s)
	walkFacts(p, "", v)
	return p.w.Flush()
}

func walkFacts(p *printer, path string, v any) {
	switch x := v.(type) {
	case map[string]any:
		if line, ok := factVal(p, x); ok {
			if _, nested := x["v"].(map[string]any); !nested {
				if _, list := x["v"].([]any); !list {
					p.line(fmt.Sprintf("  %-34s %s", Clean(path, false), line))
					return
				}
			}
			walkFacts(p, path, x["v"])
			return
		}
		keys := make([]string, 0, len(x))
		for k := range x {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		if name, ok := x["name"].(string); ok && len(x) == 2 && x["value"] != nil { // an environment variable
			p.line(fmt.Sprintf("  %-34s %s", Clean(strings.TrimRight(path, "0123456789[]")+"."+name, false), Clean(fmt.Sprint(x["value"]), false)))
			return
		}
		for _, k := range keys {
			walkFacts(p, join(path, k), x[k])
		}
	case []any:
		if flat, ok := flatList(x); ok {
			p.hang(2, fmt.Sprintf("%-34s ", Clean(path, false)), Clean(flat, false))
			return
		}
		for i, e := range x {
			walkFacts(p, path+"["+strconv.Itoa(i)+"]", e)
		}
	case nil:
	default:
		p.line(fmt.Sprintf("  %-34s %s", Clean(path, false), Clean(fmt.Sprint(x), false)))
	}
}

// factVal renders the JSON form of a fact.Val.
func factVal(p *printer, m map[string]any) (string, bool) {
	_, hasV := m["v"]
	state, hasState := m["state"].(string)
	if !hasV && !hasState {
		return "", false
	}
	s := state
	if hasV {
		s = fmt.Sprint(m["v"])
	}
	if why, ok := m["why"].(string); ok {
		s += ": " + why
	}
	s = Clean(s, false)
	if at, ok := m["at"].(map[string]any); ok {
		where := fmt.Sprint(at["path"])
		if l, ok := at["line"]; ok {
			where += ":" + fmt.Sprint(l)
		}
		if at["path"] != nil {
			s += p.paint(dim, "  ("+Clean(where, false)+")")
		}
	}
	return s, true
}

func flatList(x []any) (string, bool) {
	var parts []string
	for _, e := range x {
		switch y := e.(type) {
		case string, json.Number, bool:
			parts = append(parts, fmt.Sprint(y))
		default:
			return "", false
		}
	}
	return strings.Join(parts, ", "), true
}

func join(path, k string) string {
	if path == "" {
		return k
	}
	return path + "." + k
}
