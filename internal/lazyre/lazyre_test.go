package lazyre

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestEveryExpressionCompiles reads the sources of the module: an expression
// that is compiled at its first use must not wait for a user to find its error.
func TestEveryExpressionCompiles(t *testing.T) {
	seen := 0
	err := filepath.WalkDir("../..", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "New" {
				return true
			}
			if pkg, ok := sel.X.(*ast.Ident); !ok || pkg.Name != "lazyre" {
				return true
			}
			src, ok := literal(call.Args[0])
			if !ok {
				if !strings.HasSuffix(name, filepath.Join("rules", "log.go")) { // the rule files, which their own test compiles
					t.Errorf("%s: the expression is no literal, so nobody can check it before it is used", fset.Position(call.Pos()))
				}
				return true
			}
			seen++
			if err := New(src).Check(); err != nil {
				t.Errorf("%s: %v", fset.Position(call.Pos()), err)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 100 {
		t.Errorf("only %d expressions found: does the test still see them?", seen)
	}
}

// literal evaluates a string literal or a concatenation of them.
func literal(e ast.Expr) (string, bool) {
	switch x := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(x.Value)
		return s, err == nil
	case *ast.BinaryExpr:
		a, ok := literal(x.X)
		b, ok2 := literal(x.Y)
		return a + b, ok && ok2 && x.Op == token.ADD
	}
	return "", false
}

func TestSameAsRegexp(t *testing.T) {
	re := New(`(?P<a>\d+)-(\w)`)
	if m := re.FindStringSubmatch("x 12-b"); len(m) != 3 || m[1] != "12" || re.SubexpNames()[1] != "a" || re.String() != `(?P<a>\d+)-(\w)` {
		t.Errorf("%q", m)
	}
	if New(`(`).Check() == nil {
		t.Error("a wrong expression passes")
	}
}

func TestTexts(t *testing.T) {
	for src, want := range map[string]string{
		`\bgloo\b`: "gloo", `a(bc+)?de`: "de", `(?i)gloo`: "", `x|y`: "", `xy|zab`: "xy zab", `(foo){2,}b`: "foo", `(foo)*b`: "b", `CUDA_VISIBLE_DEVICES=["']?(?:\s|$)`: "CUDA_VISIBLE_DEVICES=",
		`(`: "", `a(?i:bcd)e`: "a", `[a]bcd`: "abcd", `(?P<n>nccl\d)x`: "nccl", `naïve`: "naïve", `abcx|abcy`: "abc", `^abc`: "", `(?:nvidia\.com|amd\.com)/(gpu)`: "nvidia.com amd.com", `a\x{fffd}b`: "",
		`(one|two|six)\d+ (nodes)`: "nodes", `ab|\d`: "",
	} {
		if got := strings.Join(texts(src), " "); got != want {
			t.Errorf("%s: %q, want %q", src, got, want)
		}
	}
}

// FuzzSame: looking for the text first changes no answer.
func FuzzSame(f *testing.F) {
	f.Add(`\bgloo\b`, "backend=gloo")
	f.Add(`a(bc+)?d{1,2}e`, "xabcde")
	f.Add(`(?i)NaN|inf`, "loss nan")
	f.Add(`(foo){0,2}bar`, "bar")
	f.Add("a\ufffdb", "a\xffb")
	f.Fuzz(func(t *testing.T, src, s string) {
		re, err := regexp.Compile(src)
		if err != nil || len(src) > 100 {
			return
		}
		if got, want := New(src).MatchString(s), re.MatchString(s); got != want {
			t.Errorf("%q on %q: %v, package regexp says %v", src, s, got, want)
		}
		if got, want := New(src).FindAllStringSubmatchIndex(s, -1), re.FindAllStringSubmatchIndex(s, -1); !reflect.DeepEqual(got, want) {
			t.Errorf("%q on %q: %v, package regexp says %v", src, s, got, want)
		}
	})
}
