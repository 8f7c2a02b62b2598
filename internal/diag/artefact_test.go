package diag

import "testing"

// The reasons are those that are given somewhere: a word that changed there must change here.
func TestReasonsOfArtefactsExist(t *testing.T) {
	for _, why := range append(nodeReasons, packageReasons...) {
		if !HasReason(why) {
			t.Errorf("no check gives the reason %q", why)
		}
	}
	for _, w := range append(nodeNeeds, packageNeeds...) {
		if needs[w].why == "" {
			t.Errorf("no need %q", w)
		}
	}
	if !ForNode("not inside a Slurm job", false) || ForNode("no interpreter was found", false) || !ForNode("no interpreter was found", true) || ForNode("no torch was found", true) || !ForGPU("no GPU was seen") {
		t.Error("ForNode, ForGPU")
	}
}
