package lint

import (
	"strings"
)

var _ = Checks.Add("user-site-leak", func(c *Ctx) {
	if !c.says("install") {
		return
	}
	if c.assigned("PYTHONUSERBASE") || c.assigned("PYTHONNOUSERSITE") {
		return
	}
	env := false
	for i := range c.S.Commands {
		x := &c.S.Commands[i]
		if x.Dead || x.File != "" {
			continue
		}
		if activation(x) != "" {
			env = true
		}
		switch x.Name {
		case "module", "ml", "source", ".", "eval", "docker", "enroot":
			env = true
		}
		cmd, args := installer(x)
		if !strings.Contains(cmd, "pip install") || strings.HasPrefix(cmd, "uv ") || len(c.out) > 0 {
			continue
		}
		user := false
		other := false
		for _, a := range args {
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
		case !other && !env && box == nil && x.Step < 0 && !c.setBefore("PATH", x.Seq) && !c.setBefore("VIRTUAL_ENV", x.Seq) && c.S.Opt("container-image") == nil && !strings.Contains(x.Words[0].Text, "/") && c.S.Shell == "bash" && !strings.ContainsAny(c.S.ShellFlags, "li"):
			c.Hit(x.Pos, "variant", "noenv", "command", clip(cmd+" "+strings.Join(args, " "), 60))
		}
	}
})
