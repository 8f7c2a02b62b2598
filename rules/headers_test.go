package rules

import (
	"bytes"
	"os"
	"testing"
)

// TestHeaderIndexIsCurrent holds that rules/headers says what the rule files
// say. UPDATE_GOLDEN=1 (make docs) writes it anew.
func TestHeaderIndexIsCurrent(t *testing.T) {
	for _, family := range append([]string{"log", "lint"}, Allocation...) {
		want, err := IndexHeaders[Header](embedded, family)
		if family == "log" {
			want, err = IndexHeaders[LogHeader](embeddedLog, family)
		}
		if err != nil {
			t.Fatal(err)
		}
		name := "headers/" + family + ".json"
		if os.Getenv("UPDATE_GOLDEN") != "" {
			if err := os.WriteFile(name, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := headerIndex.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("rules/%s is out of date: run make docs", name)
		}
	}
}
