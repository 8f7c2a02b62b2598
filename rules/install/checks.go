// Package install holds the checks of the rule files in this folder. Each check
// stands in a file with the base name of its rule.
package install

import "github.com/ncclinic/ncclinic/internal/diag"

// Checks are the registered checks by rule id.
var Checks = diag.Checks{}
