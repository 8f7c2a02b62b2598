package diag

import "github.com/ncclinic/ncclinic/internal/fact"

// NodesReport is what a report on an allocation says of its nodes besides the
// findings. Lists of nodes are in Slurm's folded form.
type NodesReport struct {
	Total    int              `json:"total"`
	Reported int              `json:"reported"`
	Expected string           `json:"expected"`
	Missing  []fact.NodeFault `json:"missing"`
	// Alike is the largest set of nodes that are the same in everything that was compared.
	Alike      string          `json:"alike"`
	AlikeCount int             `json:"alikeCount"`
	Compared   int             `json:"compared"`  // how many things were compared
	Different  []fact.Compared `json:"different"` // those that are not the same everywhere
	// Exclude are the nodes to leave out, ready for sbatch --exclude; "" for none.
	Exclude string          `json:"exclude"`
	Reach   *fact.Reach     `json:"reach,omitempty"`
	Group   *fact.GroupTest `json:"group,omitempty"`
}
