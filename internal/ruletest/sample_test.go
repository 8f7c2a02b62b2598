package ruletest

import (
	"strings"
	"testing"
)

// TestFactsStrict holds that a typo in a sample cannot pass for a fact.
func TestFactsStrict(t *testing.T) {
	for name, c := range map[string]struct{ yaml, err string }{
		"empty":            {"", ""},
		"good":             {`node: {driver: {v: {version: 535.161.08}}}`, ""},
		"absent":           {`torch: [{dir: /x, entry: 0, cuda: {state: absent}}]`, ""},
		"unknown top key":  {`pyton: {}`, "unknown field"},
		"unknown val key":  {`node: {driver: {val: {}}}`, "unknown field"},
		"unknown in value": {`node: {driver: {v: {versoin: "535"}}}`, "unknown key .node.driver.v.versoin"},
		"unknown in list":  {`node: {gpus: {v: [{index: 1, capability: "8.0"}]}}`, "unknown key .node.gpus.v[0].capability"},
		"bare number":      {`torch: [{dir: /x, entry: 0, version: {v: 2.10}}]`, "cannot unmarshal number"},
		"bad state":        {`host: {os: {state: missing}}`, "unknown state"},
		"neither":          {`host: {os: {}}`, `needs "v" or "state"`},
	} {
		_, err := Facts([]byte(c.yaml))
		switch {
		case c.err == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: error is %v, want %q", name, err, c.err)
		}
	}
}
