// Package node holds the checks of the rule files in this folder. Each check
// stands in a file with the base name of its rule.
package node

import "github.com/ncclinic/ncclinic/internal/diag"

// Checks are the registered checks by rule id.
var Checks = diag.Checks{}
