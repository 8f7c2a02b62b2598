package install

import (
	"context"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
)

func collectBuild(context.Context, *source.Machine, *fact.Torch) {}
