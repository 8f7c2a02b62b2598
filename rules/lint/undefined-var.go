package lint

var _ = Checks.Add("undefined-var", func(c *Ctx) {
	s := c.S
	if !s.Parsed || s.Syntax != nil || c.sourcedUnknown() || s.Generator || s.Opt("export") != nil {
		return // a script that says what it takes over gets it from sbatch --export
	}
	seen := map[string]bool{}
	for _, r := range s.Reads {
		if r.Default || r.Tested {
			seen[r.Name] = true
		}
	}
	for _, r := range s.Reads {
		if r.Set || r.Dead || seen[r.Name] || r.File != "" || r.Arith || c.assigned(r.Name) || !localName(r.Name) || r.Func != "" {
			continue
		}
		seen[r.Name] = true
		c.Hit(r.Pos, "name", "$"+r.Name)
	}
})
