package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("user-site-leak", func(c *Ctx) {
	if !c.says("install") {
		return
	}
	if c.assigned("PYTHONUSERBASE") || c.assigned("PYTHONNOUSERSITE") {
		return
	}
	env, module := false, false
	for i := range c.S.Commands {
		x := &c.S.Commands[i]
		if x.Dead || x.File != "" {
			continue
		}
		if activation(x) != "" {
			env = true
		}
		switch x.Name {
		case "module", "ml":
			module = true
		case "source", ".", "eval", "docker", "enroot":
			env = true
		}
		cmd, args := installer(x)
		if !strings.Contains(cmd, "pip install") || strings.HasPrefix(cmd, "uv ") || len(c.out) > 0 {
			continue
		}
		user := false
		other := false
		wheels := false // pip's own python is that of a module: the wheels come from the site
		for _, a := range args {
			wheels = wheels || a == "--no-index"
			user = user || a == "--user"
			other = other || strings.HasPrefix(a, "--target") || a == "-t" || strings.HasPrefix(a, "--prefix") || strings.HasPrefix(a, "--root")
		}
		box := x.Container
		switch {
		case user:
			c.Hit(x.Pos, "command", clip(cmd+" "+strings.Join(args, " "), 60))
		case !other && box != nil && (box.Tool == "singularity" || box.Tool == "apptainer"):
			c.Hit(x.Pos, "variant", "container", "command", clip(cmd+" "+strings.Join(args, " "), 60))
		case !other && box != nil && box.Tool == "pyxis" && c.says("/.local/bin/"):
			// The script itself expects the programs in ~/.local.
			c.Hit(x.Pos, "variant", "container", "command", clip(cmd+" "+strings.Join(args, " "), 60))
		case !other && !env && (!module || wheels) && box == nil && c.plainStep(x) && !c.setBefore("PATH", x.Seq) && !c.setBefore("VIRTUAL_ENV", x.Seq) && c.S.Opt("container-image") == nil && !strings.Contains(x.Words[0].Text, "/") && c.S.Shell == "bash" && !strings.ContainsAny(c.S.ShellFlags, "li"):
			c.Hit(x.Pos, "variant", "noenv", "command", clip(cmd+" "+strings.Join(args, " "), 60))
		}
	}
})

// plainStep reports a command in the batch shell, or in a step of the same
// system: an image has a place of its own for packages, and a site's own options
// may name one.
func (c *Ctx) plainStep(x *fact.ScriptCmd) bool {
	if x.Step < 0 {
		return true
	}
	st := &c.S.Steps[x.Step]
	for _, opts := range [][]fact.Directive{c.S.Directives, st.Opts} {
		for i := range opts {
			if !opts[i].Known || strings.HasPrefix(opts[i].Name, "container") {
				return false
			}
		}
	}
	return st.Tool == "srun" && !st.Unknown
}
