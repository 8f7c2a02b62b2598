package node

import "testing"

func TestInHostList(t *testing.T) {
	for _, c := range []struct {
		list, host string
		in, ok     bool
	}{
		{"gpu01", "gpu01", true, true},
		{"gpu01", "gpu01.cluster.local", true, true},
		{"gpu[01-04,7],login1", "gpu03", true, true},
		{"gpu[01-04,7],login1", "login1", true, true},
		{"gpu[01-04,7]", "gpu7", true, true},
		{"gpu[01-04]", "gpu1", false, true},
		{"gpu[8-12]", "gpu10", true, true},
		{"gpu[01-04]", "gpu05", false, true},
		{"gpu[01-04]", "login", false, true},
		{"r[1-2]n[1-4]", "r1n1", false, false},
		{"gpu[01-", "gpu01", false, false},
		{"", "gpu01", false, true},
	} {
		if in, ok := inHostList(c.list, c.host); in != c.in || ok != c.ok {
			t.Errorf("inHostList(%q, %q) = %v, %v, want %v, %v", c.list, c.host, in, ok, c.in, c.ok)
		}
	}
}

func FuzzInHostList(f *testing.F) {
	f.Add("gpu[01-04,7],login1", "gpu03")
	f.Add("a[", "a")
	f.Fuzz(func(t *testing.T, list, host string) { inHostList(list, host) })
}

func TestDriverCmp(t *testing.T) {
	for _, c := range []struct {
		a, b string
		cmp  int
		ok   bool
	}{
		{"535.161.08", "535.161.08", 0, true},
		{"535.161.08", "535.161.8", 0, true},
		{"470.82.01", "535.161.08", -1, true},
		{"550.54", "535.161.08", 1, true},
		{"1.1", "540.3.0", 0, false},
		{"535.x", "535.161.08", 0, false},
	} {
		if cmp, ok := driverCmp(c.a, c.b); cmp != c.cmp || ok != c.ok {
			t.Errorf("driverCmp(%q, %q) = %d, %v", c.a, c.b, cmp, ok)
		}
	}
}
