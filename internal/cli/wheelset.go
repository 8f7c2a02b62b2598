package cli

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/collect/install"
	"github.com/ncclinic/ncclinic/internal/collect/target"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/mask"
	"github.com/ncclinic/ncclinic/internal/source"
)

// wheelFile is a wheel by its name: NAME-VERSION(-BUILD)-PYTHON-ABI-PLATFORM.whl.
type wheelFile struct{ path, name, version, platform string }

func parseWheelName(p string) (wheelFile, bool) {
	base, ok := strings.CutSuffix(filepath.Base(p), ".whl")
	f := strings.Split(base, "-")
	if !ok || len(f) != 5 && len(f) != 6 {
		return wheelFile{}, false
	}
	return wheelFile{p, install.NormalName(f[0]), f[1], f[len(f)-1]}, true
}

// wheelSet turns what the user named into wheels that are installed together,
// torch's first. ok is false when something else is among it. A torch that is
// named wins over those of folders; of other packages the one that this torch
// pins, else the first.
func (a *app) wheelSet(ctx context.Context, args []string) (files []string, ok bool, err error) {
	var all []wheelFile
	named := 0
	for _, arg := range args {
		w, isWheel := parseWheelName(arg)
		if isWheel {
			if w.name == "torch" {
				named++
			}
			all = append(all, w)
			continue
		}
		in := wheelsIn(arg)
		if len(in) == 0 {
			return nil, false, nil
		}
		for _, p := range in {
			if w, ok := parseWheelName(p); ok && !slices.Contains(args, p) {
				all = append(all, w)
			}
		}
	}
	inFolder := func(w wheelFile) bool { return !slices.Contains(args, w.path) }
	var torch []wheelFile
	for _, w := range all {
		if w.name == "torch" && (named == 0 || !inFolder(w)) {
			torch = append(torch, w)
		}
	}
	switch {
	case len(torch) == 0:
		return nil, true, usagef("--explain-load: %s", a.tr("no wheel of torch is among these", "其中没有 torch 的 wheel"))
	case len(torch) > 1:
		var names []string
		for _, w := range torch {
			names = append(names, filepath.Base(w.path))
		}
		return nil, true, usagef("--explain-load: %s", fmt.Sprintf(a.tr("several wheels of torch (%s): name the one that is meant before the folder", "有多个 torch 的 wheel（%s）：请在目录之前写明是哪一个"), strings.Join(names, ", ")))
	}
	wants, err := a.wantsOf(ctx, torch[0].path)
	if err != nil {
		return nil, true, err
	}
	pinned := map[string]string{}
	for _, r := range wants {
		if n, v, ok := strings.Cut(r, "=="); ok {
			pinned[install.NormalName(n)] = v
		}
	}
	files = []string{torch[0].path}
	have := map[string]bool{"torch": true}
	for _, exact := range []bool{true, false} {
		for _, w := range all {
			if have[w.name] || inFolder(w) && !samePlatform(torch[0].platform, w.platform) || exact && pinned[w.name] != w.version {
				continue
			}
			have[w.name] = true
			files = append(files, w.path)
		}
	}
	return files, true, nil
}

// samePlatform reports whether two wheels are for one operating system and architecture.
func samePlatform(torch, other string) bool {
	if other == "any" {
		return true
	}
	for _, m := range []string{"x86_64", "aarch64", "arm64", "amd64"} {
		if strings.HasSuffix(torch, m) {
			return strings.HasSuffix(other, m) && strings.HasPrefix(other, torch[:3])
		}
	}
	return false
}

// wantsOf reads which of NVIDIA's packages a torch wheel requires.
func (a *app) wantsOf(ctx context.Context, wheel string) ([]string, error) {
	b, err := a.wheelFacts(ctx, []string{wheel}, nil)
	if err != nil {
		return nil, err
	}
	return b.Target.Wants, nil
}

func (a *app) wheelFacts(ctx context.Context, files, also []string) (*fact.Bundle, error) {
	t, err := source.OpenWheels(files)
	if err != nil {
		return nil, a.targetError(files[0], err)
	}
	defer t.Close()
	b := &fact.Bundle{}
	if _, err := target.Collect(ctx, t, target.Options{Also: also}, b); err != nil {
		return nil, usagef("%s: %v", files[0], err)
	}
	mask.Deep(b)
	return b, nil
}

// explainWheels shows how the loader would search for a library once the wheels
// are installed together.
func (a *app) explainWheels(ctx context.Context, files []string, soname string) error {
	b, err := a.wheelFacts(ctx, files, []string{soname})
	if err != nil {
		return err
	}
	return a.explainLoad(b, soname)
}

// notInWheels says of a library that no wheel has, where it would come from.
func (a *app) notInWheels(b *fact.Bundle, soname, provider string) string {
	torch := path.Base(b.Target.Path)
	switch {
	case provider != "" && b.Target.Kind == source.KindWheel:
		return fmt.Sprintf(a.tr("%s comes with %s, which %s requires and which was not given. Name it as well, or a folder with both:\n  ncclinic check --explain-load %s %s WHEEL_OR_FOLDER",
			"%s 由 %s 提供，%s 依赖它，但没有给出。请一并写明该 wheel，或给出同时包含两者的目录：\n  ncclinic check --explain-load %s %s WHEEL_OR_FOLDER"), soname, provider, torch, soname, shellWord(b.Target.Path))
	}
	return fmt.Sprintf(a.tr("%s is in nothing that was given, and %s requires no package that is known to bring it: the system's own loader path decides", "给出的内容中没有 %s，%s 也没有依赖已知提供它的软件包，结果取决于系统的加载路径"), soname, torch)
}
