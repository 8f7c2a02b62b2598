package rules_test

import (
	"testing"

	"github.com/ncclinic/ncclinic/internal/ruletest"
	"github.com/ncclinic/ncclinic/rules"
)

// TestLint runs the samples of every lint rule and checks its file.
func TestLint(t *testing.T) {
	base, err := rules.Load(rules.Embedded(), "test", "cause", "lint")
	if err != nil {
		t.Fatal(err)
	}
	ruletest.Lint(t, base)
}
