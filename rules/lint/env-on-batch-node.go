package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("env-on-batch-node", func(c *Ctx) {
	if !c.submitted() || c.nodes() < 2 || !c.says("activate") || c.S.HetGroups > 0 {
		return
	}
	var act *fact.ScriptCmd
	for i := range c.S.Commands {
		x := &c.S.Commands[i]
		switch {
		case x.Dead || x.File != "":
		case x.Step >= 0 && mentionsLocal(x), x.Name == "sbcast" || x.Name == "pdsh" || x.Name == "pdcp" || x.Name == "ssh" || x.Name == "clush":
			return // something goes to the other nodes
		case act == nil && x.Step < 0 && x.Cond == 0 && activation(x) != "" && local(x.Words[1].Text):
			act = x
		}
	}
	if act == nil || !c.madeHere(act) {
		return
	}
	c.live(func(l *fact.Launch, cmd *fact.ScriptCmd) {
		st := c.stepOf(l)
		if len(c.out) > 0 || st == nil || !c.inSrun(l) || st.Unknown || st.EffNodes < 2 || cmd.Seq < act.Seq || l.Container != nil || strings.Contains(l.Python, "/") || !training(l) {
			return
		}
		c.Hit(act.Pos, "env", clip(act.Words[1].Text, 60), "nodes", itoa(st.EffNodes), "program", show(l))
	})
})

// local reports a path on a disk of the node.
func local(p string) bool {
	for _, d := range []string{"$SLURM_TMPDIR/", "${SLURM_TMPDIR}/", "/tmp/", "/dev/shm/", "/localscratch/"} {
		if strings.HasPrefix(p, d) {
			return true
		}
	}
	return false
}

// mentionsLocal reports a command in a task that has to do with such a disk.
func mentionsLocal(x *fact.ScriptCmd) bool {
	for _, w := range x.Words {
		if strings.Contains(w.Text, "SLURM_TMPDIR") || local(w.Text) {
			return true
		}
	}
	return false
}

// madeHere reports that the batch shell itself makes the environment that it activates.
func (c *Ctx) madeHere(act *fact.ScriptCmd) bool {
	dir := strings.TrimSuffix(act.Words[1].Text, "/bin/activate")
	for i := range c.S.Commands {
		x := &c.S.Commands[i]
		if x.Dead || x.Step >= 0 || x.Seq >= act.Seq || len(x.Words) < 2 {
			continue
		}
		switch x.Name {
		case "virtualenv", "uv", "python", "python3", "tar", "cp", "rsync", "conda", "mamba", "unzip", "mkdir":
			for _, w := range x.Words[1:] {
				if t := strings.TrimSuffix(w.Text, "/"); t == dir && x.Name != "cp" || local(t+"/") && strings.HasPrefix(dir, t) {
					return true
				}
			}
		}
	}
	return false
}
