package ruletest

import (
	"fmt"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// collectTree runs the collectors over the recorded tree of a sample.
func collectTree(s Sample) (*fact.Bundle, error) {
	return nil, fmt.Errorf("%s: %s/%s is a tree: the collectors are not joined yet, write facts", s.Rule, s.Kind, s.Name)
}
