package plan

import "sort"

// Reason is one statement of a plan: an id that never changes its meaning, and
// its arguments. Text renders it.
type Reason struct {
	ID   string            `json:"id"`
	Args map[string]string `json:"args"`
}

func why(id string, kv ...string) Reason {
	r := Reason{ID: id, Args: map[string]string{}}
	for i := 0; i+1 < len(kv); i += 2 {
		r.Args[kv[i]] = kv[i+1]
	}
	return r
}

func pairs(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	var out []string
	for _, k := range keys {
		out = append(out, k, m[k])
	}
	return out
}
