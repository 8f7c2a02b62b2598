package diag

// Set is the rules of one run, with an index.
type Set struct {
	Rules   []*Rule
	Version string
	byID    map[string]*Rule
}

// NewSet indexes rules; version names the state of the knowledge base.
func NewSet(version string, rules []*Rule) *Set {
	s := &Set{Rules: rules, Version: version, byID: make(map[string]*Rule, len(rules))}
	for _, r := range rules {
		s.byID[r.ID] = r
	}
	return s
}

// ByID returns the rule with that id, or nil.
func (s *Set) ByID(id string) *Rule { return s.byID[id] }
