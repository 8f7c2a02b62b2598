package node

import (
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/tables"
)

func capFromName(g *fact.GPU) {
	if g.Cap != "" || g.Name == "" {
		return
	}
	if c := tables.CapOf(g.Name); c != "" {
		g.Cap, g.CapFrom = c, "name"
	}
}
