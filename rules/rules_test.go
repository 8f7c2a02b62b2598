package rules_test

import (
	"testing"

	"github.com/ncclinic/ncclinic/internal/ruletest"
	"github.com/ncclinic/ncclinic/rules"
)

// TestRules runs every sample of the knowledge base and checks its files.
func TestRules(t *testing.T) {
	base, err := rules.Load(rules.Embedded(), "test", rules.Allocation...)
	if err != nil {
		t.Fatal(err)
	}
	ruletest.Run(t, base)
}
