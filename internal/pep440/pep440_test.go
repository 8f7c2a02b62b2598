package pep440

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// row is one line of a table written by testdata/gen.py.
func rows(t *testing.T, file string) [][]string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out [][]string
	for line := range strings.SplitSeq(strings.TrimSuffix(string(b), "\n"), "\n") {
		if !strings.HasPrefix(line, "#") {
			out = append(out, strings.Split(line, "\t"))
		}
	}
	return out
}

// dec undoes Python's unicode_escape.
func dec(t *testing.T, s string) string {
	t.Helper()
	u, err := strconv.Unquote(`"` + s + `"`)
	if err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	return u
}

func TestVersionsAgainstPackaging(t *testing.T) {
	var groups [][]Version
	for _, r := range rows(t, "testdata/versions.tsv") {
		if r[0] == "<" {
			var g []Version
			for _, s := range r[1:] {
				v, err := Parse(dec(t, s))
				if err != nil {
					t.Fatal(err)
				}
				g = append(g, v)
			}
			groups = append(groups, g)
			continue
		}
		v, err := Parse(dec(t, r[0]))
		if r[1] == "INVALID" {
			if err == nil {
				t.Errorf("Parse(%q) = %s, want an error", r[0], v)
			}
			continue
		}
		if err != nil {
			t.Errorf("Parse(%q): %v", r[0], err)
			continue
		}
		got := []string{v.String(), v.Public(), v.Base(), v.Local(), "0"}
		if v.IsPre() {
			got[4] = "1"
		}
		if g, w := strings.Join(got, "|"), strings.Join(r[1:], "|"); g != w {
			t.Errorf("Parse(%q) = %s, want %s", r[0], g, w)
		}
	}
	if len(groups) < 50 {
		t.Fatalf("only %d groups in the table", len(groups))
	}
	for i, g := range groups {
		for j, h := range groups {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			for _, a := range g {
				for _, b := range h {
					if got := Compare(a, b); got != want {
						t.Errorf("Compare(%s, %s) = %d, want %d", a, b, got, want)
					}
				}
			}
		}
	}
}

func TestSpecifiersAgainstPackaging(t *testing.T) {
	var valid []Version
	for _, r := range rows(t, "testdata/versions.tsv") {
		if r[0] != "<" && r[1] != "INVALID" {
			v, err := Parse(dec(t, r[0]))
			if err != nil {
				t.Fatal(err)
			}
			valid = append(valid, v)
		}
	}
	for _, r := range rows(t, "testdata/specifiers.tsv") {
		ss, err := ParseSpecifiers(dec(t, r[0]))
		if (err != nil) != (r[1] == "INVALID") {
			t.Errorf("ParseSpecifiers(%q): error %v, reference %s", r[0], err, r[1])
			continue
		}
		if err != nil {
			continue
		}
		if len(r[1]) != len(valid) {
			t.Fatalf("%q: %d bits for %d versions", r[0], len(r[1]), len(valid))
		}
		for i, v := range valid {
			if got, want := ss.Match(v), r[1][i] == '1'; got != want {
				t.Errorf("%q matches %s: %v, want %v", r[0], v, got, want)
			}
		}
	}
}

func TestRelease(t *testing.T) {
	v, err := Parse("2.13.99999999999999+cu126")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{2, 13, 1_000_000, 0} {
		if got := v.Release(i); got != want {
			t.Errorf("Release(%d) = %d, want %d", i, got, want)
		}
	}
	if v.Release(-1) != 0 {
		t.Error("Release(-1) is not 0")
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"2.6.0+cu124", "2.5.0a0+872d972e41.nv24.08", "1!1.0.post1.dev2", "==2.4.*,<3", "~=2.4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if v, err := Parse(s); err == nil {
			w, err := Parse(v.String())
			if err != nil || Compare(v, w) != 0 || w.String() != v.String() {
				t.Fatalf("%q -> %s -> %s, %v", s, v, w, err)
			}
		}
		if ss, err := ParseSpecifiers(s); err == nil {
			ss.Match(Version{epoch: "0", release: []num{"1"}})
		}
	})
}
