package install

import (
	"context"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
)

func collectLoads(context.Context, *source.Machine, *fact.Bundle) {}
