package ruletest

import (
	"context"
	"testing/fstest"
	"time"

	"github.com/ncclinic/ncclinic/internal/collect/env"
	"github.com/ncclinic/ncclinic/internal/collect/install"
	"github.com/ncclinic/ncclinic/internal/collect/node"
	"github.com/ncclinic/ncclinic/internal/collect/slurm"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source/recorded"
)

// treeLimit bounds the collectors: a sample is a few small files.
const treeLimit = 20 * time.Second

// collectTree runs the real collectors over the recorded machine of a sample.
func collectTree(s Sample) (*fact.Bundle, error) {
	ctx, cancel := context.WithTimeout(context.Background(), treeLimit)
	defer cancel()
	fsys := fstest.MapFS{}
	for name, data := range s.tree {
		fsys[name] = &fstest.MapFile{Data: data, Mode: 0o644}
	}
	m, err := recorded.Machine(fsys)
	if err != nil {
		return nil, err
	}
	b := &fact.Bundle{Schema: fact.BundleSchema, Subject: fact.Subject{Kind: "environment"}}
	envfacts.Collect(m, b)
	if err := install.Collect(ctx, m, install.Options{}, b); err != nil {
		return nil, err
	}
	lib := b.Node.LibCUDA
	if err := node.Collect(ctx, m, b); err != nil {
		return nil, err
	}
	if !b.Node.LibCUDA.Looked() {
		b.Node.LibCUDA = lib
	}
	if err := slurm.Context(ctx, m, b); err != nil {
		return nil, err
	}
	return b, nil
}
