package cli

import (
	"fmt"
	"path"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/render"
	"github.com/ncclinic/ncclinic/internal/source"
	"github.com/ncclinic/ncclinic/internal/tables"
)

// explainLoad shows how the loader searched for one library. Its exit status is
// that of the program: 0 it is found, or NCCL is linked in (or RCCL has its place)
// and nothing is searched for; 1 it is nowhere, or this torch has no NCCL; 3 that
// depends on what was not given.
func (a *app) explainLoad(b *fact.Bundle, soname string) error {
	if a.out.format != "text" && a.out.format != "json" {
		return a.notOneOf("--format", a.out.format, "text", "json")
	}
	out := struct {
		Schema   string     `json:"schema"`
		Tool     string     `json:"tool"`
		Load     *fact.Load `json:"load"`               // null: nothing searches for it
		Provider string     `json:"provider,omitempty"` // requirement of the torch wheel that brings it
		Why      string     `json:"why,omitempty"`
	}{Schema: "ncclinic.load/v1", Tool: Version, Load: b.LoadOf(soname)}
	code := exitOK
	w := b.Winner()
	why, missing := a.unneeded(b, soname)
	switch {
	case w != nil && w.NCCLStatic.Or(false) && strings.HasPrefix(soname, "libnccl.so"):
		out.Load = nil
		out.Why = fmt.Sprintf(a.tr("NCCL %s is linked into %s: no %s is searched for", "NCCL %s 已静态链接进 %s，不会查找 %s"), w.NCCLVersion.Or(""), path.Base(w.NCCLStatic.At.Path), soname)
	case why != "":
		out.Load, out.Why = nil, why
		if missing {
			code = exitFound
		}
	case out.Load == nil:
		var have []string
		for _, x := range b.Loads {
			have = append(have, x.Soname)
		}
		what := a.tr("no torch library that needs it could be examined", "没有可供检查的 torch 动态库")
		if len(have) > 0 {
			what = a.tr("nothing that torch loads needs it; known are ", "torch 加载的库都不需要它；已知的有 ") + strings.Join(have, ", ")
		}
		return usagef("--explain-load %s: %s", soname, what)
	case out.Load.Path.IsAbsent() && apart(b):
		code = exitUnsure
		out.Provider = tables.Provider(soname, b.Target.Wants)
		out.Why = a.notInWheels(b, soname, out.Provider)
	case out.Load.Path.IsAbsent():
		code = exitFound
	case !out.Load.Path.IsKnown():
		code = exitUnsure
	}
	var err error
	if a.out.format == "json" {
		err = a.writeJSON(out)
	} else {
		if out.Load != nil {
			err = a.textLoad(out.Load)
		}
		if err == nil && out.Why != "" {
			_, err = fmt.Fprintln(a.Out, render.Clean(out.Why, true))
		}
	}
	if err == nil && code != exitOK {
		err = exitError(code)
	}
	return err
}

// apart reports whether an artefact is packages alone, without the system and
// the packages that they are installed with.
func apart(b *fact.Bundle) bool {
	k := b.Target.Kind
	return k == source.KindWheel || k == source.KindConda || k == source.KindSite && b.Target.Size > 0
}

func (a *app) textLoad(l *fact.Load) error {
	var s strings.Builder
	line := func(indent int, form string, v ...any) {
		s.WriteString(strings.Repeat(" ", indent) + render.Clean(fmt.Sprintf(form, v...), false) + "\n")
	}
	chain := l.Chain
	if len(chain) == 0 {
		chain = []string{l.For}
	}
	for i, p := range chain {
		mark := ""
		if i > 0 {
			mark = "└─ "
		}
		line(3*i, "%s%s", mark, p)
	}
	n := 3 * len(chain)
	line(n, "└─ %s", l.Soname)
	results := map[string]string{"found": a.tr("found, wins", "找到，选中"), "absent": a.tr("not there", "不存在"), "other-arch": a.tr("for another architecture", "其他架构"), "unreadable": a.tr("cannot be read", "无法读取")}
	shown := map[string]bool{} // each library on the way up may name the same folders
	for _, t := range l.Tried {
		if shown[t.Path] {
			continue
		}
		shown[t.Path] = true
		line(n+3, "%-18s %s  [%s]", t.Via, t.Path, results[t.Result])
	}
	if p, ok := l.Path.Get(); ok {
		if len(l.Tried) == 0 || l.Via == "already-loaded" {
			line(n+3, "%-18s %s  [%s]", l.Via, p, results["found"])
		}
	}
	s.WriteString("\n")
	switch p, ok := l.Path.Get(); {
	case ok:
		line(0, a.tr("%s is taken", "选中 %s"), p)
		if l.Real != "" && l.Real != p {
			line(2, a.tr("which is %s", "实际文件 %s"), l.Real)
		}
		line(2, a.tr("because: %s", "原因：%s"), a.whyLoaded(l))
		if v, ok := l.Version.Get(); ok {
			line(2, a.tr("version %s", "版本 %s"), v+cudaOf(l))
		}
		if len(l.Owners) > 0 {
			line(2, a.tr("several packages wrote this file: %s", "多个软件包都写入了该文件：%s"), strings.Join(l.Owners, ", "))
		} else if l.Owner != "" {
			line(2, a.tr("from the package %s", "来自软件包 %s"), l.Owner)
		}
		if l.Shadows != "" {
			line(2, a.tr("it shadows %s %s", "它遮蔽了 %s %s"), l.Shadows, l.ShadowsVer)
		}
		if len(l.Missing) > 0 {
			line(2, a.tr("it lacks symbols that are needed: %s", "缺少所需的符号：%s"), strings.Join(l.Missing, ", "))
		}
	case l.Path.IsAbsent():
		line(0, a.tr("%s is nowhere on the search path", "搜索路径上找不到 %s"), l.Soname)
	default:
		line(0, "%s: %s", l.Soname, l.Path.Why)
	}
	_, err := a.Out.Write([]byte(s.String()))
	return err
}

func cudaOf(l *fact.Load) string {
	if c, ok := l.CUDA.Get(); ok && c != l.Version.Or("") {
		return "+cuda" + c
	}
	return ""
}

func (a *app) whyLoaded(l *fact.Load) string {
	where := func(s string) string {
		if l.ViaDir != "" {
			return fmt.Sprintf("%s (%s)", s, l.ViaDir)
		}
		return s
	}
	switch l.Via {
	case "preload":
		return where(a.tr("LD_PRELOAD loads it before everything else", "LD_PRELOAD 在其他库之前加载它"))
	case "DT_RPATH":
		return where(a.tr("DT_RPATH of the library that needs it, which comes before LD_LIBRARY_PATH", "引用它的库带有 DT_RPATH，优先于 LD_LIBRARY_PATH"))
	case "LD_LIBRARY_PATH":
		return where(a.tr("LD_LIBRARY_PATH comes before DT_RUNPATH and the system", "LD_LIBRARY_PATH 优先于 DT_RUNPATH 和系统目录"))
	case "DT_RUNPATH":
		return where(a.tr("DT_RUNPATH of the library that needs it", "引用它的库的 DT_RUNPATH"))
	case "ld.so.cache":
		return a.tr("the system's ld.so.cache has it", "系统的 ld.so.cache 中有它")
	case "default":
		return a.tr("a default folder of the system has it", "系统默认目录中有它")
	case "already-loaded":
		if l.ViaDir != "" {
			return fmt.Sprintf(a.tr("torch/__init__.py loads it itself, out of %s, before anything asks for the name", "torch/__init__.py 先自行从 %s 加载了它"), l.ViaDir)
		}
		return a.tr("something loaded it before under this name", "之前已按该名字加载")
	case "path":
		return a.tr("it is named with its path", "按完整路径指定")
	}
	return path.Base(l.Via)
}
