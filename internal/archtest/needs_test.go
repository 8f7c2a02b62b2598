package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"github.com/ncclinic/ncclinic/internal/diag"
)

// programs are what a command that decides may call: it has to be on a cluster,
// or be this program.
var programs = strings.Fields(`ncclinic srun sbatch sacct sacctmgr scontrol sdiag sinfo squeue
	nvidia-smi nvidia-modprobe nvidia-imex-ctl python python3 dpkg dmesg df quota env getent grep head hostname ip ls timeout which echo
	tail`)

// blanks are words that a person fills in, where no input can tell.
var blanks = strings.Fields("JOBID NODE PORT DIRECTORY PARTITION PID")

// TestNeeds reads the sources for everything that would decide a finding: it is
// words, with Chinese ones in internal/diag, or a command that can be pasted.
func TestNeeds(t *testing.T) {
	commands, words := 0, 0
	for _, dir := range []string{"internal/explain", "internal/cli", "rules/install", "rules/node", "rules/nodes", "rules/lint"} {
		files, err := filepath.Glob(filepath.Join("../..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			for _, n := range needsIn(t, name) {
				if !diag.IsCommand(n.text) {
					words++
					if n.text == diag.NeedText(n.text, "zh") {
						t.Errorf("%s: %q has no Chinese words", n.at, n.text)
					}
					continue
				}
				commands++
				for _, why := range notPasted(n.text) {
					t.Errorf("%s: %q is neither a command (%s) nor among the words of internal/diag/needtext.go", n.at, n.text, why)
				}
			}
		}
	}
	if commands < 80 || words < 20 {
		t.Errorf("only %d commands and %d words found: are they still written in the same way?", commands, words)
	}
}

func TestNotPasted(t *testing.T) {
	for cmd, ok := range map[string]bool{
		"sacct -j JOBID -o JobID,State%30": true, "srun bash -c 'hostname -I; echo $MASTER_ADDR'": true, "PYTHONNOUSERSITE=1 python -c 'import torch'": true,
		"/opt/envs/x/bin/python -m pip check": true, "dmesg -T | grep -E 'NVRM|Xid' | tail": true, "dmesg | grep -i oom": true,
		"the stack of the core file": false, "NCCL_DEBUG=INFO (Bootstrap : Using …)": false, "NCCL_DEBUG=INFO": false, "nc between the nodes": false,
		"env -u X sbatch …": false, "sacct -j NUMBER": false, "env | grep NCCL": true, "hostname   # where": false, "df -h; hostname": false, "": false,
	} {
		if why := notPasted(cmd); (len(why) == 0) != ok {
			t.Errorf("%q: %v, want ok %v", cmd, why, ok)
		}
	}
}

// notPasted says what is wrong with a command, nothing when it can be pasted.
func notPasted(cmd string) (why []string) {
	if strings.Contains(cmd, "…") {
		why = append(why, "something is left out")
	}
	f, err := syntax.NewParser(syntax.KeepComments(true)).Parse(strings.NewReader(cmd), "")
	if err != nil {
		return append(why, err.Error())
	}
	if len(f.Stmts) != 1 || len(f.Last)+len(f.Stmts[0].Comments) > 0 {
		why = append(why, "not one command and nothing else")
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		c, ok := n.(*syntax.CallExpr)
		if !ok {
			return true
		}
		if len(c.Args) == 0 {
			why = append(why, "no program")
			return true
		}
		program := filepath.Base(c.Args[0].Lit())
		if !slices.Contains(programs, program) {
			why = append(why, program+" is no program that is known here")
		}
		if program == "grep" { // its capitals are what it looks for
			return true
		}
		for _, a := range c.Args {
			if w := a.Lit(); len(w) > 2 && strings.ToUpper(w) == w && strings.Trim(w, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" && !slices.Contains(blanks, w) {
				why = append(why, w+" is no word that stands for something")
			}
		}
		return true
	})
	return why
}

type need struct{ at, text string }

// needsIn finds the strings of a file that become the needs of a finding. What
// is not known before a report is made is a word X in them.
func needsIn(t *testing.T, name string) []need {
	t.Helper()
	src, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	consts := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.ValueSpec); ok && len(s.Names) == len(s.Values) {
			for i := range s.Names {
				if v, ok := literal(s.Values[i], nil); ok {
					consts[s.Names[i].Name] = v
				}
			}
		}
		return true
	})
	var out []need
	var take func(e ast.Expr)
	take = func(e ast.Expr) {
		switch e := e.(type) {
		case *ast.CompositeLit:
			for _, x := range e.Elts {
				take(x)
			}
		case *ast.CallExpr:
			if f, ok := e.Fun.(*ast.Ident); ok && f.Name == "append" {
				for _, x := range e.Args {
					take(x)
				}
			}
		default:
			if s, ok := literal(e, consts); ok {
				out = append(out, need{set.Position(e.Pos()).String(), s})
			}
		}
	}
	isNeeds := func(name string) bool { return name == "needs" || name == "Needs" }
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if k, ok := n.Key.(*ast.Ident); ok && isNeeds(k.Name) {
				take(n.Value)
			}
		case *ast.AssignStmt:
			for i, l := range n.Lhs {
				if s, ok := l.(*ast.SelectorExpr); ok && isNeeds(s.Sel.Name) && i < len(n.Rhs) {
					take(n.Rhs[i])
				}
			}
		case *ast.CallExpr:
			called := ""
			switch f := n.Fun.(type) {
			case *ast.SelectorExpr:
				called = f.Sel.Name
			case *ast.Ident:
				called = f.Name
			}
			if called == "Need" || called == "need" || called == "unknown" {
				for _, a := range n.Args {
					take(a)
				}
			}
		case *ast.FuncDecl:
			if n.Body == nil || !strings.HasSuffix(n.Name.Name, "Needs") && !strings.HasPrefix(n.Name.Name, "ask") {
				return true
			}
			ast.Inspect(n.Body, func(n ast.Node) bool {
				if r, ok := n.(*ast.ReturnStmt); ok {
					for _, x := range r.Results {
						take(x)
					}
				}
				return true
			})
		}
		return true
	})
	return out
}

// literal evaluates a string that is put together; it is none when no part of it
// is written down.
func literal(e ast.Expr, consts map[string]string) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		s, ok := consts[e.Name]
		return s, ok
	case *ast.ParenExpr:
		return literal(e.X, consts)
	case *ast.BinaryExpr:
		a, one := literal(e.X, consts)
		b, two := literal(e.Y, consts)
		if !one {
			a = unknown(e.X)
		}
		if !two {
			b = unknown(e.Y)
		}
		return a + b, one || two
	}
	return "", false
}

// unknown stands for a part of a string that is known at run time only.
func unknown(e ast.Expr) string {
	if i, ok := e.(*ast.IndexExpr); ok {
		if k, ok := i.Index.(*ast.BasicLit); ok && k.Value == `"python"` {
			return "/opt/env/bin/python"
		}
	}
	return "X"
}
