package diag

import (
	"slices"
	"testing"
)

func TestFixesWithoutPip(t *testing.T) {
	tmpl := []FixTmpl{{ID: "pip", Commands: []string{"{python} -m pip uninstall -y torch", "{python} -m pip install --no-cache-dir torch --index-url U", "{python} -c 'import torch'", "other -m pip install x"}}}
	for _, c := range []struct {
		how  string
		want []string
	}{
		{"", []string{"/v/bin/python -m pip uninstall -y torch", "/v/bin/python -m pip install --no-cache-dir torch --index-url U", "/v/bin/python -c 'import torch'", "other -m pip install x"}},
		{"uv", []string{"uv pip uninstall --python /v/bin/python torch", "uv pip install --python /v/bin/python --no-cache-dir torch --index-url U", "/v/bin/python -c 'import torch'", "other -m pip install x"}},
		{"ensurepip", []string{"/v/bin/python -m ensurepip --upgrade", "/v/bin/python -m pip uninstall -y torch", "/v/bin/python -m pip install --no-cache-dir torch --index-url U", "/v/bin/python -c 'import torch'", "other -m pip install x"}},
	} {
		a := Args{"python": "/v/bin/python"}
		if c.how != "" {
			a[NoPip] = c.how
		}
		if got := expandFixes(tmpl, a)[0].Commands; !slices.Equal(got, c.want) {
			t.Errorf("%q: %q", c.how, got)
		}
	}
}
