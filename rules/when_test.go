package rules

import "testing"

func TestConditions(t *testing.T) {
	for _, c := range []struct{ when, en, zh string }{
		{"", "", ""},
		{"python,public_version", "", ""},
		{"board", "On a Jetson:", "Jetson 板卡："},
		{"installer=pip,python,public_version,cuda_tag,!board,!image", "Installed by pip, the driver is known:", "由 pip 安装，驱动版本已知："},
	} {
		if got := conditions(c.when, "en"); got != c.en {
			t.Errorf("%q: %q, want %q", c.when, got, c.en)
		}
		if got := conditions(c.when, "zh"); got != c.zh {
			t.Errorf("%q: %q, want %q", c.when, got, c.zh)
		}
	}
	for k := range whenWords["en"] {
		if whenWords["zh"][k] == "" {
			t.Errorf("no Chinese words for %s", k)
		}
	}
}
