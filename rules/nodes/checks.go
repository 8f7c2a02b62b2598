// Package nodes holds the checks that compare the nodes of an allocation. Each
// check stands in a file with the base name of its rule.
package nodes

import "github.com/ncclinic/ncclinic/internal/diag"

// Checks are the registered checks by rule id.
var Checks = diag.Checks{}
